package grafana

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scaler.mesh/scaler/dashboards"
	"scaler.mesh/scaler/internal/process"
)

// startTimeout limits a start: creating its database takes Grafana longest, and Docker
// may have to fetch the image first.
const startTimeout = 5 * time.Minute

// removeTimeout bounds the removal of a container.
const removeTimeout = 30 * time.Second

// StartOptions describe the Grafana to start.
type StartOptions struct {
	// Dir is created and holds its data and provisioning. The caller removes it.
	Dir string
	// Group is the process group that it runs in. If it runs in a container, the group's
	// folder names the container for RemoveContainer.
	Group *process.Group
	// Log takes its output; "" discards it.
	Log string
	// Address is HOST:PORT; "" means a free port of 127.0.0.1.
	Address string
	// Source is the Prometheus that Grafana queries.
	Source dashboards.Source
}

// Server is a running Grafana with scaler's dashboards. Anybody who can reach it can view
// them without logging in, so it should listen on a loopback address. Nobody can change
// anything.
type Server struct {
	url  string
	proc *process.Process
	// container is the name of a Docker container, docker the path of docker; "" for a
	// Grafana that ends with its group.
	container, docker string
}

// Start starts a Grafana and returns when it serves the dashboards. On error it may have
// been started: it is in the group.
func (l Launcher) Start(ctx context.Context, opts StartOptions) (*Server, error) {
	exported, err := dashboards.Export(opts.Dir, opts.Source)
	if err != nil {
		return nil, fmt.Errorf("starting Grafana: %w", err)
	}
	if opts.Address == "" {
		if opts.Address, err = process.FreeAddress(); err != nil {
			return nil, fmt.Errorf("starting Grafana: %w", err)
		}
	}
	settings, err := settings(opts, exported)
	if err != nil {
		return nil, fmt.Errorf("starting Grafana: %w", err)
	}
	s := &Server{url: "http://" + opts.Address}
	spec := l.program(settings, opts)
	if l.image != "" {
		if s.container, err = nameContainer(opts.Group.Dir()); err != nil {
			return nil, fmt.Errorf("starting Grafana: %w", err)
		}
		s.docker = l.path
		spec = l.container(s.container, settings, opts)
	}
	if s.proc, err = opts.Group.Start(spec); err != nil {
		return nil, fmt.Errorf("starting Grafana: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := s.proc.WaitReady(limited, s.ready); err != nil {
		return s, fmt.Errorf("starting Grafana: %w", err)
	}
	return s, nil
}

// settings returns Grafana's settings as environment variables.
func settings(opts StartOptions, exported dashboards.Exported) (map[string]string, error) {
	host, port, err := net.SplitHostPort(opts.Address)
	if err != nil {
		return nil, err
	}
	all, err := dashboards.All()
	if err != nil {
		return nil, err
	}
	data := filepath.Join(opts.Dir, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return nil, err
	}
	return map[string]string{
		"GF_PATHS_DATA":         data,
		"GF_PATHS_LOGS":         filepath.Join(data, "log"),
		"GF_PATHS_PLUGINS":      filepath.Join(data, "plugins"),
		"GF_PATHS_PROVISIONING": exported.Provisioning,
		"GF_SERVER_HTTP_ADDR":   host,
		"GF_SERVER_HTTP_PORT":   port,
		"GF_LOG_MODE":           "console",
		"GF_LOG_LEVEL":          "warn",
		// Anybody who can reach it may view everything, and change nothing: it is
		// temporary and for one reader.
		"GF_AUTH_ANONYMOUS_ENABLED":  "true",
		"GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer",
		"GF_AUTH_DISABLE_LOGIN_FORM": "true",
		// It makes no requests to the internet.
		"GF_ANALYTICS_REPORTING_ENABLED":             "false",
		"GF_ANALYTICS_CHECK_FOR_UPDATES":             "false",
		"GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES":      "false",
		"GF_NEWS_NEWS_FEED_ENABLED":                  "false",
		"GF_PLUGINS_PREINSTALL_DISABLED":             "true",
		"GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH":  filepath.Join(exported.Dashboards, all[0].UID+".json"),
		"GF_SNAPSHOTS_EXTERNAL_ENABLED":              "false",
		"GF_PLUGINS_PUBLIC_KEY_RETRIEVAL_DISABLED":   "true",
		"GF_UNIFIED_ALERTING_ENABLED":                "false",
		"GF_ALERTING_ENABLED":                        "false",
		"GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true",
	}, nil
}

func (l Launcher) program(settings map[string]string, opts StartOptions) process.Spec {
	args := []string{"--homepath", l.home}
	if filepath.Base(l.path) != "grafana-server" { // which newer releases have no more
		args = append([]string{"server"}, args...)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + opts.Dir}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		env = append(env, name+"="+settings[name])
	}
	return process.Spec{Name: "grafana", Path: l.path, Args: args, Env: env, Dir: opts.Dir, Log: opts.Log}
}

// container returns the command that runs Grafana in Docker with this machine's network
// and the files that it needs, and as this user, so that the files can be removed.
func (l Launcher) container(name string, settings map[string]string, opts StartOptions) process.Spec {
	args := []string{
		"run", "--rm", "--name", name, "--network", "host",
		"--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()),
		"--volume", opts.Dir + ":" + opts.Dir,
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "--env", key+"="+settings[key])
	}
	// Docker's client finds its server by its own environment variables.
	return process.Spec{Name: "grafana", Path: l.path, Args: append(args, l.image), Env: os.Environ(), Dir: opts.Dir, Log: opts.Log}
}

// ready checks whether Grafana has the dashboards, which it reads when it starts.
func (s *Server) ready(ctx context.Context) error {
	base, err := ParseURL(s.url)
	if err != nil {
		return err
	}
	all, err := dashboards.All()
	if err != nil {
		return err
	}
	c := client{base: base, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	for _, d := range all {
		if err := c.call(ctx, http.MethodGet, "/api/dashboards/uid/"+d.UID, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// URL returns the address of its pages.
func (s *Server) URL() string { return s.url }

// Done is closed when Grafana has ended. Err then returns the reason, or nil if its group
// was stopped.
func (s *Server) Done() <-chan struct{} { return s.proc.Done() }

// Err returns why Grafana ended; see Done.
func (s *Server) Err() error { return s.proc.Err() }

// Stop removes what does not end with the group's processes: a container continues if its
// client was killed. It is removed however the client ended, within a separate
// removeTimeout, because the client may have used up all the time of ctx. On error
// RemoveContainer may be tried later, while the group's folder exists.
func (s *Server) Stop(ctx context.Context) error {
	if s.container == "" {
		return nil
	}
	stopped := s.proc.Stop(ctx)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	return errors.Join(stopped, removeContainer(limited, s.docker, s.container))
}
