package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"scaler.mesh/scaler/internal/credentialfile"
	"scaler.mesh/scaler/internal/grafana"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/place/attach"
)

// addPrometheusFlags adds those that name a Prometheus of a cluster; readPrometheusFlags reads them.
func addPrometheusFlags(f *pflag.FlagSet) {
	f.String("prometheus-url", "", "with --context: `URL` of a Prometheus that has metrics of the control plane already, whose figures become part of the record, too; service:NAMESPACE/NAME:PORT is one that the API server reaches, and detect finds it (default none is asked)")
	f.String("prometheus-token-file", "", "with --prometheus-url and an address that is reached from here: `FILE` with the bearer token that it wants")
}

// readPrometheusFlags puts the flags into a target. What is wrong with a URL is stated without its credentials.
func readPrometheusFlags(f *pflag.FlagSet, t *attach.Target) (err error) {
	given, file := f.Lookup("prometheus-url"), f.Lookup("prometheus-token-file")
	url := given.Value.String()
	if given.Changed && url == "" {
		return usagef(`parsing --prometheus-url "": want detect, service:NAMESPACE/NAME:PORT, or a URL`)
	}
	if t.Prometheus, err = clusterprometheus.ParseAddress(url); err != nil {
		return usagef("parsing --prometheus-url %q: %w", grafana.WithoutCredentials(url), err)
	}
	if !file.Changed {
		return nil
	}
	if t.Prometheus.URL == "" {
		return usagef("parsing --prometheus-token-file %q: want it with --prometheus-url and an address that is reached from here: the API server passes no token to a Service", file.Value)
	}
	if t.PrometheusToken, err = credentialfile.Token("--prometheus-token-file", file.Value.String()); err != nil {
		return usageError{err}
	}
	return nil
}

// describePrometheus states in a line what was found, without what a terminal would obey: the version and the error are what a server answered.
func describePrometheus(s *clusterprometheus.Source) string {
	text := s.Address.String()
	if s.Detected && s.Err == nil {
		text += ", found by its labels or its name"
	}
	if s.Version != "" {
		text += ", version " + s.Version
	}
	if s.Err != nil {
		text += ": not asked: " + strings.ReplaceAll(s.Err.Error(), "\n", "; ")
	}
	return output.Plain(text)
}
