//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"scaler.mesh/scaler/dashboards"
	"scaler.mesh/scaler/pkg/record"
)

var _ = Describe("the dashboards", Ordered, func() {
	var (
		where    place
		runs     []record.Run
		session  *gexec.Session
		address  string // of the Prometheus that serves both runs
		before   map[string]string
		from, to time.Time
	)
	BeforeAll(func() {
		where = newPlace()
		rollout := where.rollout(20, longSettle, "--mode", "both", "--steady", "2s", "--probes", "1", "--calibrate=false")
		Eventually(rollout).WithTimeout(6 * time.Minute).Should(gexec.Exit(exitDone)) // two runs
		runs = must(record.Read(where.out))
		Expect(runs).To(HaveLen(2))
		before = sums(where.out)
		session = where.start("dashboards", "serve", "--no-grafana", where.out)
		Eventually(session.Err).Should(gbytes.Say("ctrl-C ends it"))
		Eventually(session.Out).Should(gbytes.Say("/d/scaler-control-plane")) // the last line, of another pipe
		address = regexp.MustCompile(`prometheus +(http\S+)`).FindStringSubmatch(string(session.Out.Contents()))[1]
		for _, run := range runs {
			for _, phase := range run.Phases {
				if from.IsZero() || phase.Start.Before(from) {
					from = phase.Start
				}
				if phase.End.After(to) {
					to = known(phase.End)
				}
			}
		}
	})

	It("have queries that parse, name metrics that exist, and find data in both modes", func(ctx SpecContext) {
		prom := promv1.NewAPI(must(api.NewClient(api.Config{Address: address})))
		existing := map[string]bool{}
		names, _, _, err := prom.LabelValues(ctx, "__name__", nil, from.Add(-time.Minute), to.Add(time.Minute))
		Expect(err).NotTo(HaveOccurred())
		for _, name := range names {
			existing[string(name)] = true
		}
		asked := 0
		for _, q := range questions() {
			for _, run := range runs {
				expr := q.filled(run, to.Sub(from))
				for name := range metricNames(ctx, address, expr) {
					Expect(existing).To(HaveKey(name), "%s: %s", q, expr)
				}
				result, warnings, infos, err := prom.QueryRange(ctx, expr, promv1.Range{Start: run.Phases[0].Start, End: to, Step: time.Second})
				Expect(err).NotTo(HaveOccurred(), "%s: %s", q, expr)
				Expect(append(warnings, infos...)).NotTo(ContainElement(ContainSubstring("PromQL warning")), "%s: %s", q, expr)
				Expect(values(result)).NotTo(BeZero(), "%s has no data of %s: %s", q, run.Name, expr)
				asked++
			}
		}
		Expect(asked).To(BeNumerically(">", 150))
	})

	It("show what the records say, of the control plane alone", func(ctx SpecContext) {
		prom := promv1.NewAPI(must(api.NewClient(api.Config{Address: address})))
		for _, run := range runs {
			steady := known(run.ControlPlane.Steady)
			want := map[string]float64{"A": known(known(steady.MemoryBytes).End), "B": known(known(steady.HeapBytes).End)}
			for _, q := range questions() {
				if q.panel != "Control plane: memory" {
					continue
				}
				// The record has memory between two readings, the panel the last
				// scrape: a collection of garbage may lie between them.
				end := known(known(run.Phase(record.PhaseSteady)).End)
				result, _, _, err := prom.QueryRange(ctx, q.filled(run, to.Sub(from)), promv1.Range{
					Start: end.Add(-2 * time.Second), End: end.Add(2 * time.Second), Step: 500 * time.Millisecond,
				})
				Expect(err).NotTo(HaveOccurred())
				Expect(result).To(HaveLen(1), "%s of %s", q, run.Name)
				var around []float64
				for _, v := range result.(model.Matrix)[0].Values {
					around = append(around, float64(v.Value))
				}
				Expect(want[q.ref]).To(And(
					BeNumerically(">=", 0.98*slices.Min(around)), BeNumerically("<=", 1.02*slices.Max(around)),
				), "%s of %s: %v", q, run.Name, around)
				delete(want, q.ref)
			}
			Expect(want).To(BeEmpty(), "queries of the panel")
		}
	})

	It("have variables and annotations that find both runs", func(ctx SpecContext) {
		prom := promv1.NewAPI(must(api.NewClient(api.Config{Address: address})))
		for _, d := range documents() {
			found := map[string]string{}
			for _, v := range d.Templating.List {
				if v.Type != "query" {
					continue
				}
				parts := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Definition)
				Expect(parts).To(HaveLen(3), v.Definition)
				got, _, _, err := prom.LabelValues(ctx, parts[2], []string{strings.ReplaceAll(parts[1], "$run", ".*")}, from, to)
				Expect(err).NotTo(HaveOccurred())
				found[v.Name] = fmt.Sprint(got)
			}
			Expect(found).To(Equal(map[string]string{
				"run": "[istiod-permissive-20 istiod-strict-20]", "mode": "[permissive strict]",
				"phase": "[baseline none probe rollout settle steady]", "control_plane": "[istiod]",
			}), d.UID)
			for _, a := range d.Annotations.List {
				for _, run := range runs {
					expr := question{expr: a.Expr, all: d.everything()}.filled(run, to.Sub(from))
					result, _, _, err := prom.QueryRange(ctx, expr, promv1.Range{Start: from, End: to, Step: time.Second})
					Expect(err).NotTo(HaveOccurred(), expr)
					Expect(values(result)).NotTo(BeZero(), expr)
				}
			}
		}
	})

	It("show a run no longer than it lasted", func(ctx SpecContext) {
		prom := promv1.NewAPI(must(api.NewClient(api.Config{Address: address})))
		result, _, _, err := prom.Query(ctx, "scaler_run_info", to)
		Expect(err).NotTo(HaveOccurred())
		Expect(result.(model.Vector)).To(HaveLen(1), "the first run is over when the second ends")
	})

	if grafana := os.Getenv("GRAFANA_URL"); grafana != "" {
		It("load into the Grafana of GRAFANA_URL, where each panel finds data", func(ctx SpecContext) {
			expectInGrafana(ctx, where, grafana, address, runs, to)
		}, NodeTimeout(5*time.Minute))
	}

	It("leave nothing when interrupted, and the records as they were", func() {
		interrupt(session)
		Expect(wait(session)).To(Equal(exitDone))
		Expect(os.ReadDir(filepath.Join(where.state, "dashboards"))).To(BeEmpty())
		Expect(where.children()).To(BeEmpty())
		Expect(sums(where.out)).To(Equal(before))
	})

	It("leave to cleanup what a kill left", func() {
		killed := where.start("dashboards", "serve", "--no-grafana", runs[0].Dir)
		Eventually(killed.Err).Should(gbytes.Say("ctrl-C ends it"))
		Expect(syscall.Kill(killed.Command.Process.Pid, syscall.SIGKILL)).To(Succeed())
		Eventually(killed).Should(gexec.Exit())
		Expect(os.ReadDir(filepath.Join(where.state, "dashboards"))).To(HaveLen(1))
		Expect(wait(where.start("cleanup"))).To(Equal(exitDone))
		Expect(os.ReadDir(filepath.Join(where.state, "dashboards"))).To(BeEmpty())
		Expect(where.children()).To(BeEmpty())
	})
})

// dashboardDocument has the fields of a dashboard that the specs check.
type dashboardDocument struct {
	UID    string
	Panels []struct {
		Title   string
		Targets []struct {
			RefID, Expr string
			Instant     bool
		}
	}
	Templating struct {
		List []struct{ Name, Type, Definition, AllValue string }
	}
	Annotations struct{ List []struct{ Expr string } }
}

func documents() []dashboardDocument {
	GinkgoHelper()
	var all []dashboardDocument
	for _, d := range must(dashboards.All()) {
		var document dashboardDocument
		Expect(json.Unmarshal(d.JSON, &document)).To(Succeed())
		all = append(all, document)
	}
	return all
}

// question is one query of one panel.
type question struct {
	dashboard, panel, ref, expr string
	instant                     bool
	all                         map[string]string // by variable, what it stands for when all is chosen
}

func questions() []question {
	GinkgoHelper()
	var all []question
	for _, d := range documents() {
		all = append(all, d.questions()...)
	}
	return all
}

// questions returns the queries of one dashboard.
func (d dashboardDocument) questions() []question {
	everything := d.everything()
	var all []question
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			all = append(all, question{d.UID, p.Title, t.RefID, t.Expr, t.Instant, everything})
		}
	}
	return all
}

func (q question) String() string { return q.dashboard + ", " + q.panel + " " + q.ref }

// chosen returns the query with a reader's choices filled in: one run, all of it.
func (q question) chosen(run record.Run) string {
	return strings.NewReplacer("$run", run.Name, "$mode", run.ModeName(),
		"$phase", q.all["phase"], "$control_plane", q.all["control_plane"]).Replace(q.expr)
}

// everything returns the values of variables when all is chosen, as Grafana fills them in: the
// value that the dashboard has for that, or else every one that was found.
func (d dashboardDocument) everything() map[string]string {
	found := map[string]string{"phase": "(baseline|none|probe|rollout|settle|steady)", "control_plane": "(istiod)"}
	all := map[string]string{}
	for _, v := range d.Templating.List {
		all[v.Name] = cmp.Or(v.AllValue, found[v.Name])
	}
	return all
}

// filled is chosen with what Grafana itself fills in, at a scrape a second.
func (q question) filled(run record.Run, length time.Duration) string {
	return strings.NewReplacer("$__rate_interval", "4s", "$__range", fmt.Sprintf("%.0fs", math.Ceil(length.Seconds()))).Replace(q.chosen(run))
}

// values returns the numbers in a result.
func values(result model.Value) int {
	n := 0
	for _, series := range result.(model.Matrix) {
		for _, v := range series.Values {
			if !math.IsNaN(float64(v.Value)) {
				n++
			}
		}
	}
	return n
}

// metricNames returns the metrics that a query names, as Prometheus itself parses
// it.
func metricNames(ctx context.Context, address, expr string) map[string]bool {
	GinkgoHelper()
	var answer struct{ Data any }
	getJSON(ctx, address+"/api/v1/parse_query?query="+url.QueryEscape(expr), &answer)
	Expect(answer.Data).NotTo(BeNil(), expr)
	names := map[string]bool{}
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			if kind := node["type"]; kind == "vectorSelector" || kind == "matrixSelector" {
				names[node["name"].(string)] = true
			}
			for _, child := range node {
				walk(child)
			}
		case []any:
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(answer.Data)
	Expect(names).NotTo(BeEmpty(), expr)
	return names
}

func getJSON(ctx context.Context, address string, into any) {
	GinkgoHelper()
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, address, nil))
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	Expect(json.NewDecoder(response.Body).Decode(into)).To(Succeed(), address)
}

// sums returns the contents of all files below a folder.
func sums(dir string) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	Expect(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})).To(Succeed())
	return all
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
