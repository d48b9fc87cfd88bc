// Command opinions compares scaler's load generator with two well-known ones: vegeta and
// fortio. All three send the same requests at the same rate to one echo server, which is
// a separate process, and alternate in short rounds. The latency that each reports is
// printed with its interval, and with its difference from scaler's if that is
// significant.
//
// It is a separate module, so that building scaler does not download the other two:
//
//	go -C hack/opinions run . -rate 500 -duration 10s -rounds 6
//
// If nothing stalls, the three must agree except for the cost of their own clients:
// fortio sends and reads in one loop, the others hand requests to workers. If something
// stalls, they must differ: vegeta counts from when a worker took a request, fortio from
// when a connection sent it, and scaler from when it was due.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"

	"fortio.org/fortio/fhttp"
	"fortio.org/fortio/periodic"
	"fortio.org/log"
	vegeta "github.com/tsenart/vegeta/v12/lib"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/dataplane"
	"scaler.mesh/scaler/internal/output"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "opinions:", err)
		os.Exit(1)
	}
}

// serve, as the only argument, is the echo server: it prints its address and
// ends with its input.
const serve = "serve"

// quantiles are the quantiles that are compared. The maximum is printed but not compared:
// one request in ten seconds says nothing about a generator.
var quantiles = []struct {
	name string
	of   func(opinion) float64
}{
	{"p50", func(o opinion) float64 { return o.p50 }},
	{"p90", func(o opinion) float64 { return o.p90 }},
	{"p99", func(o opinion) float64 { return o.p99 }},
}

// opinion is the report of a generator for one round, times in seconds.
type opinion struct {
	p50, p90, p99, max float64
	sent, failed       int64
	late               float64 // p50 of how late it sent, if that is in its latency; 0 = it is not
}

// plan is the load that a generator sends.
type plan struct {
	address  string // HOST:PORT of the server
	rate     int    // requests a second
	duration time.Duration
}

type generator struct {
	name string
	send func(ctx context.Context, p plan) (opinion, error)
}

// generators are the load generators. The first is scaler's own, with which the
// others are compared.
var generators = []generator{
	{"scaler", sendScaler},
	{"vegeta v12.12.0", sendVegeta},
	{"fortio v1.75.3", sendFortio},
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if slices.Equal(args, []string{serve}) {
		return echo(stdin, stdout)
	}
	flags := flag.NewFlagSet("opinions", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rate := flags.Int("rate", 500, "requests a second")
	duration := flags.Duration("duration", 10*time.Second, "length of a generator's turn")
	rounds := flags.Int("rounds", 6, "turns of each; their order is turned round every time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rate < 1 || *duration <= 0 || *rounds < 2 {
		return fmt.Errorf("-rate %d -duration %s -rounds %d: want 1, more than none, and 2 at least", *rate, *duration, *rounds)
	}
	address, stop, err := startServer(ctx, stderr)
	if err != nil {
		return err
	}
	opinions := make([][]opinion, len(generators))
	err = rounded(ctx, plan{address, *rate, *duration}, *rounds, opinions, stderr)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	return show(stdout, opinions)
}

// rounded lets the generators take turns: A B C, C B A, and so on, so that drift affects
// all of them equally. The first turn is not counted.
func rounded(ctx context.Context, p plan, rounds int, opinions [][]opinion, progress io.Writer) error {
	order := []int{0, 1, 2}
	for round := range rounds + 1 {
		for _, g := range order {
			o, err := generators[g].send(ctx, p)
			if err := cmp.Or(context.Cause(ctx), err); err != nil {
				return fmt.Errorf("sending with %s: %w", generators[g].name, err)
			}
			fmt.Fprintf(progress, "round %d of %d, %s: p50 %.0f µs, p99 %.0f µs\n", round, rounds, generators[g].name, o.p50*1e6, o.p99*1e6)
			if round > 0 {
				opinions[g] = append(opinions[g], o)
			}
		}
		slices.Reverse(order)
	}
	return nil
}

func sendScaler(ctx context.Context, p plan) (opinion, error) {
	r, err := dataplane.Open(ctx, dataplane.OpenLoad{
		Load:     dataplane.Load{Target: dataplane.Target{Addresses: []string{p.address}}},
		Rate:     float64(p.rate),
		Duration: p.duration,
	})
	if err != nil {
		return opinion{}, err
	}
	o, err := observations{r.Latency}.opinion(r.Requests, r.Failed()+r.NotSent)
	if late := r.Lateness.Summary().P50; late != nil {
		o.late = *late
	}
	return o, err
}

func sendVegeta(ctx context.Context, p plan) (opinion, error) {
	attacker := vegeta.NewAttacker()
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	target := vegeta.NewStaticTargeter(vegeta.Target{Method: "GET", URL: "http://" + p.address + "/"})
	all := observations{stats.NewHistogram()}
	var sent, failed int64
	for r := range attacker.Attack(target, vegeta.Rate{Freq: p.rate, Per: time.Second}, p.duration, "") {
		all.Record(r.Latency)
		sent++
		if r.Code != http.StatusOK {
			failed++
		}
	}
	return all.opinion(sent, failed)
}

// sendFortio uses the number of connections that scaler and vegeta use if nothing stalls:
// one most of the time. With fortio's default of 4 each connection rests between its
// requests, which is slow on a virtual machine.
func sendFortio(_ context.Context, p plan) (opinion, error) {
	log.SetLogLevelQuiet(log.Warning)
	all := observations{stats.NewHistogram()}
	r, err := fhttp.RunHTTPTest(&fhttp.HTTPRunnerOptions{
		HTTPOptions: *fhttp.NewHTTPOptions("http://" + p.address + "/"),
		RunnerOptions: periodic.RunnerOptions{
			QPS: float64(p.rate), Duration: p.duration, NumThreads: 1,
			Out: io.Discard, AccessLogger: all,
		},
	})
	if err != nil {
		return opinion{}, err
	}
	return all.opinion(r.DurationHistogram.Count, r.DurationHistogram.Count-r.RetCodes[200])
}

// observations holds every latency that a generator reports, so that the quantiles of all
// three are computed in the same way. vegeta's own are estimates, and fortio's own
// histogram has buckets up to twice as wide as their values. fortio reports its
// latencies to it through its access log interface.
type observations struct{ *stats.Histogram }

func (o observations) Start(ctx context.Context, _ periodic.ThreadID, _ int64, _ time.Time) context.Context {
	return ctx
}

func (o observations) Report(_ context.Context, _ periodic.ThreadID, _ int64, _ time.Time, seconds float64, _ bool, _ string) {
	o.Record(time.Duration(seconds * float64(time.Second)))
}

func (o observations) Info() string { return "observations" }

// opinion returns the summary of a histogram.
func (o observations) opinion(sent, failed int64) (opinion, error) {
	s := o.Summary()
	all := opinion{sent: sent, failed: failed}
	for to, from := range map[*float64]*float64{&all.p50: s.P50, &all.p90: s.P90, &all.p99: s.P99, &all.max: s.Max} {
		if from == nil {
			return opinion{}, fmt.Errorf("a quantile is among %d lost requests", s.Lost)
		}
		*to = *from
	}
	return all, nil
}

// show prints a row for each generator: means over the rounds with 95 % intervals, and
// their difference from scaler's if Welch's test, corrected for the number of tests, is
// significant at 5 %.
func show(w io.Writer, opinions [][]opinion) error {
	values := func(g, q int) []float64 {
		var v []float64
		for _, o := range opinions[g] {
			v = append(v, quantiles[q].of(o)*1e6)
		}
		return v
	}
	var differences []stats.Difference
	var p []float64
	for g := 1; g < len(generators); g++ {
		for q := range quantiles {
			d, err := stats.Welch(values(0, q), values(g, q), 1, 0.95)
			if err != nil {
				return err
			}
			differences, p = append(differences, d), append(p, d.P)
		}
	}
	p = stats.Holm(p)
	table := output.Table{Head: []string{"µs"}}
	for _, q := range quantiles {
		table.Head = append(table.Head, q.name, "less scaler's")
	}
	table.Head = append(table.Head, "max", "requests", "failed")
	for g, generator := range generators {
		row := []string{generator.name}
		for q := range quantiles {
			m, _ := stats.MeanOf(values(g, q), 0.95)
			row = append(row, fmt.Sprintf("%.0f (%.0f to %.0f)", m.Value, m.Low, m.High))
			if g == 0 {
				row = append(row, "")
				continue
			}
			k := (g-1)*len(quantiles) + q
			if d := differences[k]; p[k] < 0.05 {
				row = append(row, fmt.Sprintf("%+.0f (%+.0f to %+.0f), p %.2g", d.Value, d.Low, d.High, p[k]))
			} else {
				row = append(row, fmt.Sprintf("~ (p %.2g)", p[k]))
			}
		}
		var most float64
		var sent, failed int64
		for _, o := range opinions[g] {
			most, sent, failed = max(most, o.max*1e6), sent+o.sent, failed+o.failed
		}
		table.Add(append(row, fmt.Sprintf("%.0f", most), fmt.Sprint(sent), fmt.Sprint(failed))...)
	}
	late := 0.0
	for _, o := range opinions[0] {
		late += o.late * 1e6 / float64(len(opinions[0]))
	}
	_, err := fmt.Fprintf(w, "%s\nOf scaler's p50, %.0f µs are from when a request was due to when it was sent.\n", table.Markdown(), late)
	return err
}

// echo runs the server's process.
func echo(stdin io.Reader, stdout io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		listener.Close()
	}()
	fmt.Fprintln(stdout, listener.Addr())
	err = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "echo")
	}))
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// startServer starts the server, and returns its address and a function that ends it.
func startServer(ctx context.Context, stderr io.Writer) (string, func() error, error) {
	self, err := os.Executable()
	if err != nil {
		return "", nil, err
	}
	server := exec.CommandContext(ctx, self, serve)
	server.Stderr = stderr
	in, err := server.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop := func() error { return errors.Join(in.Close(), server.Wait()) }
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("starting the server: %w", err), stop())
	}
	return strings.TrimSpace(address), stop, nil
}
