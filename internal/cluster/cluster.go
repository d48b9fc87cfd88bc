package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/process"
)

const (
	// startTimeout limits the whole start, which takes seconds on an idle machine, so
	// that nothing waits for ever.
	startTimeout = 3 * time.Minute
	// unwindTimeout limits the stopping of what was started before an error.
	unwindTimeout = 15 * time.Second
)

// Programs are the paths of the programs that make a cluster. All are required.
type Programs struct {
	Etcd, APIServer, ControllerManager, Scheduler, Kwok string
}

// Options state what cluster [Up] starts.
type Options struct {
	// Group runs the components; the cluster's files are in its folder, whose
	// name, a DNS label, is the cluster's. The caller owns it: stopping it stops
	// the cluster too, and removing it removes the cluster's files.
	Group *process.Group
	// Programs are the programs of the cluster's components; all are required.
	Programs Programs
	// KwokConfig is the configuration file of kwok, with Stages that make pods
	// run; package kwok has one.
	KwokConfig []byte
	// Controllers are further controllers of the controller-manager to run, in addition
	// to the cluster's own; nil = none.
	Controllers []string
	// WithoutPodGC leaves pods of nodes that the API server does not know, which are otherwise
	// deleted after about a minute.
	WithoutPodGC bool
	// LogDir is the folder for the log files of the components; "" is the folder logs in
	// the group's.
	LogDir string
	// Progress receives each step; nil is silent.
	Progress func(msg string)
}

// ValidateName reports whether a cluster can have the name: it must be a DNS
// label.
func ValidateName(name string) error {
	if validation.IsDNS1123Label(name) != nil {
		return fmt.Errorf("cluster name %q: want at most %d lower-case letters, digits and inner hyphens", name, validation.DNS1123LabelMaxLength)
	}
	return nil
}

// name returns the cluster's name, which is that of its group's folder.
func (o Options) name() string { return filepath.Base(o.Group.Dir()) }

func (o Options) validate() error {
	if err := ValidateName(o.name()); err != nil {
		return err
	}
	for name, path := range map[string]string{
		Etcd: o.Programs.Etcd, APIServer: o.Programs.APIServer, ControllerManager: o.Programs.ControllerManager,
		Scheduler: o.Programs.Scheduler, Kwok: o.Programs.Kwok,
	} {
		if path == "" {
			return fmt.Errorf("cluster %s: no program given for %s", o.name(), name)
		}
	}
	return nil
}

// Component is one running part of a cluster.
type Component struct {
	Name    string
	Process process.Handle // of its present life
	// MetricsURL is the URL that Prometheus scrapes. If it is HTTPS, the files, in PEM,
	// are the server's authority and the client's certificate and key; otherwise they are
	// "".
	MetricsURL, CAFile, CertFile, KeyFile string
}

// Cluster is a running cluster.
type Cluster struct {
	// fixed after Up
	layout   layout
	group    *process.Group
	settings []Setting
	died     chan error
	progress func(string)

	mu         sync.Mutex
	components []Component
	running    map[string]running // by name
}

// running is a component and its process, which a later one may have replaced.
type running struct {
	part
	process *process.Process
}

// Up starts a cluster and returns when all components are ready and a first pod was
// scheduled and given an address. That takes seconds. On error, and when ctx ends,
// everything that it started is stopped and its files are removed; the group stays open.
func Up(ctx context.Context, opts Options) (*Cluster, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	c, err := up(ctx, opts)
	if portTaken(err) {
		// A port cannot be reserved between choosing it and a program's listening on it.
		opts.Progress("a port was taken by another program meanwhile; starting again with others")
		c, err = up(ctx, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("starting cluster %s: %w", opts.name(), err)
	}
	return c, nil
}

func portTaken(err error) bool {
	var exit *process.ExitError
	return errors.As(err, &exit) && strings.Contains(exit.LogEnd, "address already in use")
}

func up(ctx context.Context, opts Options) (_ *Cluster, err error) {
	l := layout{dir: opts.Group.Dir(), logDir: opts.LogDir, controllers: opts.controllers()}
	if l.logDir == "" {
		l.logDir = filepath.Join(l.dir, "logs")
	}
	settings, err := l.settings(opts.KwokConfig)
	if err != nil {
		return nil, err
	}
	c := &Cluster{layout: l, group: opts.Group, progress: opts.Progress, settings: settings, running: map[string]running{}}
	defer func() {
		if err != nil {
			ctx, cancel := context.WithTimeout(interrupt.Uncancelled(ctx), unwindTimeout)
			defer cancel()
			err = errors.Join(err, c.Down(ctx))
		}
	}()
	if err := c.prepare(opts); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	if err := c.start(ctx, opts); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare writes all files that the programs read.
func (c *Cluster) prepare(opts Options) (err error) {
	l := &c.layout
	if l.ports, err = choosePorts(); err != nil {
		return err
	}
	if l.pki, err = makePKI(l.pkiDir()); err != nil {
		return err
	}
	if err := writeKubeconfig(l.kubeconfig(), opts.name(), l.server(), l.pki.CA, l.pki.AdminCert, l.pki.AdminKey); err != nil {
		return err
	}
	if err := writeKubeconfig(l.clientKubeconfig(), opts.name(), l.server(), l.pki.CA, l.pki.ClientCert, l.pki.ClientKey); err != nil {
		return err
	}
	if err := os.WriteFile(l.kwokConfig(), opts.KwokConfig, 0o644); err != nil {
		return fmt.Errorf("writing kwok's configuration: %w", err)
	}
	about, err := json.Marshal(about{Server: l.server(), Started: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return fmt.Errorf("writing the cluster's description: %w", err)
	}
	if err := os.WriteFile(filepath.Join(l.dir, aboutName), about, 0o644); err != nil {
		return fmt.Errorf("writing the cluster's description: %w", err)
	}
	return nil
}

// part is a component that start is to start.
type part struct {
	name, program string
	args          []arg
	metricsURL    string
	ready         string // URL that answers 200 when it is
	// environment holds variables in addition to PATH and HOME; objects are the API
	// objects that the component works with.
	environment []arg
	objects     []object
}

// components returns all parts of a cluster, in the order in which they are started.
func (l layout) components(programs Programs) []part {
	kwok := "http://" + address(l.ports.kwok)
	parts := []part{
		{name: Etcd, program: programs.Etcd, args: l.etcdArgs(), metricsURL: httpsMetrics(l.ports.etcd), ready: "https://" + address(l.ports.etcd) + "/readyz"},
		{name: APIServer, program: programs.APIServer, args: l.apiServerArgs(), metricsURL: httpsMetrics(l.ports.apiServer), ready: l.server() + "/readyz", objects: objects},
		{name: ControllerManager, program: programs.ControllerManager, args: l.controllerManagerArgs(), metricsURL: httpsMetrics(l.ports.controllerManager), ready: "https://" + address(l.ports.controllerManager) + "/healthz"},
		{name: Scheduler, program: programs.Scheduler, args: l.schedulerArgs(), metricsURL: httpsMetrics(l.ports.scheduler), ready: "https://" + address(l.ports.scheduler) + "/readyz"},
		{name: Kwok, program: programs.Kwok, args: l.kwokArgs(), metricsURL: kwok + "/metrics", ready: kwok + "/healthz"},
	}
	for i := range parts {
		parts[i].environment = seldomCollected
	}
	return parts
}

// start starts the components, each wave when the one before it is ready. The error is the
// interrupt, if there was one: a terminal's ctrl-C also ends a program that was just forked and
// is still in scaler's process group. Else it is that of the first component that ended, if one did:
// what is waited for then may be another one.
func (c *Cluster) start(outer context.Context, opts Options) error {
	ctx, fail := context.WithCancelCause(outer)
	defer fail(nil)
	parts := c.layout.components(opts.Programs)
	c.died = make(chan error, len(parts))
	err := c.startParts(ctx, opts, parts, fail)
	if cause := context.Cause(outer); err != nil && errors.Is(cause, context.Canceled) {
		return cause
	}
	select {
	case died := <-c.died:
		return died
	default:
		return err
	}
}

// startParts starts etcd, then the API server, then its clients. ended is called for one that ends.
func (c *Cluster) startParts(ctx context.Context, opts Options, parts []part, ended func(error)) error {
	l := c.layout
	waves := [][]part{parts[:1], parts[1:2], parts[2:]}
	client, err := newHTTPClient(l.pki)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()

	var processes []*process.Process
	for _, wave := range waves {
		var started []*process.Process
		for _, p := range wave {
			opts.Progress("starting " + p.name)
			child, err := c.launch(p)
			if err != nil {
				return err
			}
			c.watch(child, ended)
			started = append(started, child)
		}
		for i, child := range started {
			if err := child.WaitReady(ctx, answers(client, wave[i].ready)); err != nil {
				return err
			}
			if err := makeObjects(ctx, l.kubeconfig(), child, wave[i].objects); err != nil {
				return err
			}
		}
		processes = append(processes, started...)
	}
	opts.Progress("waiting for a first pod to run")
	return runPod(ctx, l.kubeconfig(), processes[len(processes)-1])
}

// launch starts the program of a part, for the first time or in place of one
// that ended.
func (c *Cluster) launch(p part) (*process.Process, error) {
	child, err := c.group.Start(process.Spec{
		Name: p.name, Path: p.program, Args: commandLine(p.args), Env: environment(p.environment), Dir: c.layout.dir, Log: c.layout.log(p.name),
		Priority: process.PriorityLast,
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[p.name] = running{p, child}
	for i := range c.components {
		if c.components[i].Name == p.name {
			c.components[i].Process = child.Handle()
			return child, nil
		}
	}
	c.components = append(c.components, c.component(p, child.Handle()))
	return child, nil
}

func (c *Cluster) component(p part, handle process.Handle) Component {
	component := Component{Name: p.name, Process: handle, MetricsURL: p.metricsURL}
	if strings.HasPrefix(p.metricsURL, "https:") {
		pki := c.layout.pki
		component.CAFile, component.CertFile, component.KeyFile = pki.CA, pki.AdminCert, pki.AdminKey
	}
	return component
}

// watch reports a component that ends unexpectedly at once, as the others take their time to stop, and again as an error,
// unless many reports are waiting already. It calls ended with the reason. Its goroutine ends with the component.
func (c *Cluster) watch(p *process.Process, ended func(error)) {
	go func() {
		<-p.Done()
		if err := p.Err(); err != nil {
			c.progress(ending(err))
			select {
			case c.died <- err:
			default:
			}
			ended(err)
		}
	}()
}

// ending names a component that ended, without its command and its log.
func ending(err error) string {
	if exit, ok := errors.AsType[*process.ExitError](err); ok {
		return fmt.Sprintf("%s has ended: %v", exit.Name, exit.Cause)
	}
	return err.Error()
}

// Kubeconfig returns the path of a self-contained kubeconfig file that gives a client all
// rights.
func (c *Cluster) Kubeconfig() string { return c.layout.kubeconfig() }

// Components returns the cluster's own processes, in order of start.
func (c *Cluster) Components() []Component {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Component(nil), c.components...)
}

// Settings returns the settings of a component that differ from the stock ones.
func (c *Cluster) Settings(component string) []Setting {
	return slices.DeleteFunc(slices.Clone(c.settings), func(s Setting) bool { return s.Component != component })
}

// Running reports whether a component runs now.
func (c *Cluster) Running(name string) bool {
	c.mu.Lock()
	r, known := c.running[name]
	c.mu.Unlock()
	if !known {
		return false
	}
	select {
	case <-r.process.Done():
		return false
	default:
		return true
	}
}

// Died delivers an error for each component that ended unexpectedly. It is never closed.
func (c *Cluster) Died() <-chan error { return c.died }

// Down stops the cluster's components, the last started first, and deletes its files
// except the logs. Other processes in the group continue: an owner that wants to end all
// of them removes the group instead. If ctx is done it kills the components, and returns
// only when they have ended.
func (c *Cluster) Down(ctx context.Context) error {
	c.mu.Lock()
	var processes []*process.Process
	for _, component := range c.components {
		processes = append(processes, c.running[component.Name].process)
	}
	c.mu.Unlock()
	var errs []error
	for _, p := range slices.Backward(processes) {
		errs = append(errs, p.Stop(ctx))
	}
	for _, path := range c.layout.files() {
		errs = append(errs, os.RemoveAll(path))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping cluster: %w", err)
	}
	return nil
}
