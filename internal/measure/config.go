package measure

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Target names a program that is scraped.
type Target struct {
	// Job is the component's name; it becomes the label "job". Several targets
	// may share it.
	Job string
	// Instance is the label "instance", which distinguishes targets of a job; "" means the
	// target's address.
	Instance string
	// Later means that the program does not run yet: no scrape of it is awaited before Expect.
	Later bool
	// URL of its metrics, such as https://127.0.0.1:6443/metrics.
	URL string
	// CAFile, CertFile and KeyFile are for https: the authority to check the
	// target by ("" means the system's), and the client certificate to show
	// ("" means none).
	CAFile, CertFile, KeyFile string
	// BearerTokenFile holds a token to show, read at each scrape; "" means none.
	BearerTokenFile string
	// Labels are added to all its series; nil adds none.
	Labels map[string]string
	// Interval is the time between two scrapes if it is longer than that of Options.
	Interval time.Duration
}

// dropped names the histograms of the API server whose buckets nobody here
// reads, and which are more than half of its series: per kind of object, times
// of its calls to etcd and of its watch cache, and the same requests counted a
// second and third time for service levels. Sums and counts stay, and so do
// the buckets of request and admission times.
//
// Dropping is done after the scrape: it spares Prometheus time and disk. The
// API server still pays for writing them out, which [ClusterInterval] limits.
var dropped = []string{
	"apiserver_flowcontrol_.+",
	"apiserver_request_body_size_bytes",
	"apiserver_request_sli_duration_seconds",
	"apiserver_request_slo_duration_seconds",
	"apiserver_watch_cache_read_wait_seconds",
	"apiserver_watch_events_sizes",
	"apiserver_watch_list_duration_seconds",
	"etcd_request_duration_seconds",
}

// The types below are the part of Prometheus's configuration file in use.
type promConfig struct {
	Global        promGlobal   `json:"global"`
	ScrapeConfigs []promScrape `json:"scrape_configs"`
}

type promGlobal struct {
	ScrapeInterval string `json:"scrape_interval"`
	ScrapeTimeout  string `json:"scrape_timeout"`
	// Protocol buffers cost a target the least to write, and carry native
	// histograms; classic ones are kept too, for older readers.
	NativeHistograms  bool `json:"scrape_native_histograms"`
	ClassicHistograms bool `json:"always_scrape_classic_histograms"`
}

type promScrape struct {
	JobName        string              `json:"job_name"`
	ScrapeInterval string              `json:"scrape_interval,omitempty"`
	ScrapeTimeout  string              `json:"scrape_timeout,omitempty"`
	Scheme         string              `json:"scheme"`
	MetricsPath    string              `json:"metrics_path"`
	Params         map[string][]string `json:"params,omitempty"`
	// A target without a content type speaks the oldest text format.
	Fallback string `json:"fallback_scrape_protocol"`
	// All targets are on this machine: packing costs them more than it saves.
	Compression bool     `json:"enable_compression"`
	TLS         *promTLS `json:"tls_config,omitempty"`
	// Authorization is a bearer token.
	Authorization *promToken    `json:"authorization,omitempty"`
	Static        []promStatic  `json:"static_configs"`
	Relabel       []promRelabel `json:"metric_relabel_configs"`
}

type promTLS struct {
	CAFile   string `json:"ca_file,omitempty"`
	CertFile string `json:"cert_file,omitempty"`
	KeyFile  string `json:"key_file,omitempty"`
}

type promToken struct {
	File string `json:"credentials_file"`
}

type promStatic struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

type promRelabel struct {
	Sources []string `json:"source_labels"`
	Regex   string   `json:"regex"`
	Action  string   `json:"action"`
}

// config writes the configuration file of Prometheus for the targets.
func config(targets []Target, interval time.Duration) ([]byte, error) {
	c := promConfig{Global: promGlobal{
		ScrapeInterval:    promDuration(interval),
		ScrapeTimeout:     promDuration(timeout(interval)),
		NativeHistograms:  true,
		ClassicHistograms: true,
	}}
	for i, t := range targets {
		scrape, err := t.scrape(i, interval)
		if err != nil {
			return nil, fmt.Errorf("configuring the scrape of %q: %w", t.Job, err)
		}
		c.ScrapeConfigs = append(c.ScrapeConfigs, scrape)
	}
	return yaml.Marshal(c)
}

// scrape returns the target's own entry; index distinguishes it from others of its job, and least is the time between two
// scrapes of most targets.
func (t Target) scrape(index int, least time.Duration) (promScrape, error) {
	if t.Job == "" {
		return promScrape{}, fmt.Errorf("job is empty")
	}
	u, err := url.Parse(t.URL)
	if err != nil {
		return promScrape{}, err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return promScrape{}, fmt.Errorf("url %q: want http://HOST:PORT/PATH or https", t.URL)
	}
	labels := map[string]string{"job": t.Job}
	if t.Instance != "" {
		labels["instance"] = t.Instance
	}
	maps.Copy(labels, t.Labels)
	s := promScrape{
		JobName:     fmt.Sprintf("%s/%d", t.Job, index),
		Scheme:      u.Scheme,
		MetricsPath: u.Path,
		Params:      u.Query(),
		Fallback:    "PrometheusText0.0.4",
		Static:      []promStatic{{Targets: []string{u.Host}, Labels: labels}},
		Relabel: []promRelabel{{
			Sources: []string{"__name__"},
			Regex:   "(" + strings.Join(dropped, "|") + ")_bucket",
			Action:  "drop",
		}},
	}
	if t.Interval > least {
		s.ScrapeInterval, s.ScrapeTimeout = promDuration(t.Interval), promDuration(timeout(t.Interval))
	}
	if t.BearerTokenFile != "" {
		s.Authorization = &promToken{File: t.BearerTokenFile}
	}
	if u.Scheme == "https" {
		s.TLS = &promTLS{CAFile: t.CAFile, CertFile: t.CertFile, KeyFile: t.KeyFile}
	}
	return s, nil
}

// timeout returns a time just under the interval: a scrape that takes longer is a gap, and
// must be over before the next is due.
func timeout(interval time.Duration) time.Duration { return interval * 95 / 100 }

// promDuration writes a duration as Prometheus does; its unit of time is the
// millisecond.
func promDuration(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }
