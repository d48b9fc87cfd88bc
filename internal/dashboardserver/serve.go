// Package dashboardserver shows recorded runs in a Prometheus and, where there is
// one, a Grafana with scaler's dashboards, until it is stopped.
package dashboardserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"scaler.mesh/scaler/dashboards"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/grafana"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Spec states which runs to show, and with what.
type Spec struct {
	// Runs were read from their folders, which are not changed; at least one is required.
	Runs []record.Run
	// State is the folder for what the programs need while they run.
	State string
	// Programs state where Prometheus is found.
	Programs component.Options
	// PrometheusAddress and GrafanaAddress are HOST:PORT; "" means free ports of
	// 127.0.0.1.
	PrometheusAddress, GrafanaAddress string
	// Grafana states where a Grafana is looked for.
	Grafana grafana.FindOptions
	// GrafanaWanted makes it an error if no Grafana can be started; otherwise the runs
	// are served without one.
	GrafanaWanted bool
	// NoGrafana leaves it out.
	NoGrafana bool
}

// Serving describes what is served, and where.
type Serving struct {
	Prometheus string // URL
	Grafana    string // URL; "" means that there is none
	// NoGrafana states why there is none.
	NoGrafana string
	// From and To enclose all phases of the runs.
	From, To time.Time
	// Dashboards are the dashboards in Grafana, with the addresses of their pages for
	// that time; without a Grafana they have no addresses.
	Dashboards []grafana.Pushed
}

// Validate checks what was asked for, before anything is started.
func (s Spec) Validate() error {
	for field, address := range map[string]string{"prometheusAddress": s.PrometheusAddress, "grafanaAddress": s.GrafanaAddress} {
		if address == "" {
			continue
		}
		if err := scenario.CheckListenAddress(field, address, 1); err != nil {
			return err
		}
	}
	if path := s.Grafana.Program; path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return scenario.Refuse("grafana", path, "the program grafana or grafana-server")
		}
	}
	if home := s.Grafana.Home; home != "" && !grafana.IsHome(home) {
		return scenario.Refuse("grafanaHome", home, "the folder that holds Grafana's conf/defaults.ini")
	}
	if _, _, err := phasesOf(s.Runs); err != nil {
		return err
	}
	// The series of different runs are distinguished only by the name of the run.
	named := map[string]string{}
	for _, run := range s.Runs {
		if other, taken := named[run.Name]; taken {
			return fmt.Errorf("reading %s and %s: both are called %s, and would be drawn as one: want one of them at a time", other, run.Dir, run.Name)
		}
		named[run.Name] = run.Dir
	}
	return measure.CheckTSDBs(tsdbs(s.Runs))
}

func tsdbs(runs []record.Run) []string {
	var all []string
	for _, run := range runs {
		all = append(all, run.PrometheusPath())
	}
	return all
}

// phasesOf returns the time from the first phase's start to the last phase's end. A phase
// without an end counts as one minute long.
func phasesOf(runs []record.Run) (from, to time.Time, err error) {
	for _, run := range runs {
		for _, phase := range run.Phases {
			end := phase.Start.Add(time.Minute)
			if phase.End != nil {
				end = *phase.End
			}
			if from.IsZero() || phase.Start.Before(from) {
				from = phase.Start
			}
			if end.After(to) {
				to = end
			}
		}
	}
	if from.IsZero() {
		var dirs []string
		for _, run := range runs {
			dirs = append(dirs, run.Dir)
		}
		return from, to, fmt.Errorf("reading %s: no phase of it has begun: there is nothing to show", strings.Join(dirs, ", "))
	}
	return from, to, nil
}

// scrapeInterval returns the time between two scrapes of the control plane in the run that was slowed down most.
func scrapeInterval(runs []record.Run) time.Duration {
	longest := measure.SampleInterval
	for _, run := range runs {
		longest = max(longest, time.Duration(run.Slowdown()*float64(measure.SampleInterval)))
	}
	return longest
}

// Serve serves runs in a Prometheus, and in a Grafana if there is one. It calls ready
// once, when everything can be opened; the end of ctx after that is no error, because it
// is the normal end. It leaves nothing behind.
func Serve(ctx context.Context, spec Spec, log func(string), ready func(Serving) error) error {
	s := &server{spec: spec, log: log}
	return steps.Run(ctx, []steps.Step{
		{Name: "finding programs", Do: s.find},
		{Name: "making a folder", Do: s.makeFolder},
		{Name: "serving the runs", Do: s.startPrometheus},
		{Name: "serving the dashboards", Do: s.startGrafana},
		{Name: "showing", Do: func(ctx context.Context) (steps.Undo, error) { return nil, s.show(ctx, ready) }},
	})
}

// server is a Prometheus, and a Grafana, with recorded runs.
type server struct {
	spec Spec
	log  func(string)

	// made by the steps, in this order
	program    string // Prometheus
	launcher   *grafana.Launcher
	missing    string // why there is no launcher
	group      *process.Group
	prometheus *measure.Served
	grafana    *grafana.Server
}

// find finds the programs before anything is copied.
func (s *server) find(ctx context.Context) (steps.Undo, error) {
	s.spec.Programs.Progress = s.log
	paths, err := component.Paths(ctx, s.spec.Programs, component.Prometheus)
	if err != nil {
		return nil, err
	}
	s.program = paths[component.Prometheus]
	if s.spec.NoGrafana {
		s.missing = "none was wanted"
		return nil, nil
	}
	launcher, err := grafana.Find(ctx, s.spec.Grafana)
	switch {
	case errors.Is(err, grafana.ErrNone) || err != nil && ctx.Err() == nil && !s.spec.GrafanaWanted:
		s.missing = err.Error()
		return nil, nil
	case err != nil:
		return nil, err
	}
	s.launcher = &launcher
	return nil, nil
}

// makeFolder makes the folder of the processes and of all their data, which a
// cleanup finds should this program be killed.
func (s *server) makeFolder(context.Context) (steps.Undo, error) {
	var err error
	s.group, err = process.OpenGroup(filepath.Join(s.spec.State, "dashboards", fmt.Sprint(os.Getpid())), process.GroupOptions{})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if s.grafana != nil {
			if err := s.grafana.Stop(ctx); err != nil {
				// If the group is not stopped, a cleanup can find it, with the name of
				// the container in its folder; its processes end with this program.
				return err
			}
		}
		return s.group.Remove(ctx)
	}, nil
}

func (s *server) dir(name string) string { return filepath.Join(s.group.Dir(), name) }

func (s *server) startPrometheus(ctx context.Context) (_ steps.Undo, err error) {
	s.prometheus, err = measure.Serve(ctx, measure.ServeOptions{
		Prometheus: s.program,
		TSDBs:      tsdbs(s.spec.Runs),
		Dir:        s.dir("prometheus"),
		Group:      s.group,
		Log:        s.dir("prometheus.log"),
		Address:    s.spec.PrometheusAddress,
		Interval:   scrapeInterval(s.spec.Runs),
	})
	return nil, err
}

func (s *server) startGrafana(ctx context.Context) (_ steps.Undo, err error) {
	if s.launcher == nil {
		return nil, nil
	}
	s.log(fmt.Sprintf("starting Grafana (%s)", s.launcher))
	s.grafana, err = s.launcher.Start(ctx, grafana.StartOptions{
		Dir:     s.dir("grafana"),
		Group:   s.group,
		Log:     s.dir("grafana.log"),
		Address: s.spec.GrafanaAddress,
		Source:  dashboards.Source{URL: s.prometheus.URL(), ScrapeInterval: scrapeInterval(s.spec.Runs)},
	})
	if err == nil || ctx.Err() != nil {
		return nil, err
	}
	if s.spec.GrafanaWanted {
		return nil, fmt.Errorf("%w\n--no-grafana serves the runs without one", err)
	}
	// As if an image cannot be fetched: the runs can be viewed without it.
	s.missing = strings.Join(strings.Fields(err.Error()), " ")
	if s.grafana != nil {
		err, s.grafana = s.grafana.Stop(ctx), nil
		return nil, err
	}
	return nil, nil
}

// show reports what is served, and waits for the end.
func (s *server) show(ctx context.Context, ready func(Serving) error) error {
	what, err := s.describe()
	if err != nil {
		return err
	}
	if err := ready(what); err != nil {
		return err
	}
	var grafanaEnded <-chan struct{} // of none, never
	if s.grafana != nil {
		grafanaEnded = s.grafana.Done()
	}
	select {
	case <-s.prometheus.Done():
		return s.prometheus.Err()
	case <-grafanaEnded:
		return s.grafana.Err()
	case <-ctx.Done():
		return nil
	}
}

func (s *server) describe() (Serving, error) {
	from, to, err := phasesOf(s.spec.Runs)
	if err != nil {
		return Serving{}, err
	}
	what := Serving{Prometheus: s.prometheus.URL(), NoGrafana: s.missing, From: from, To: to}
	all, err := dashboards.All()
	if err != nil {
		return Serving{}, err
	}
	if s.grafana != nil {
		what.Grafana = s.grafana.URL()
	}
	for _, d := range all {
		shown := grafana.Pushed{UID: d.UID, Title: d.Title}
		if s.grafana != nil {
			shown.URL = fmt.Sprintf("%s/d/%s?from=%d&to=%d", what.Grafana, d.UID, from.UnixMilli(), to.UnixMilli())
		}
		what.Dashboards = append(what.Dashboards, shown)
	}
	return what, nil
}
