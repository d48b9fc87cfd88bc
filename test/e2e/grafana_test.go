//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/dashboards"
	"scaler.mesh/scaler/pkg/record"
)

// expectInGrafana pushes the dashboards into a real Grafana and has it answer
// every panel's every query, from a data source that asks prometheus. The
// Grafana may be of use to others: the data source is removed again.
func expectInGrafana(ctx context.Context, where place, address, prometheus string, runs []record.Run, to time.Time) {
	GinkgoHelper()
	const source = "scaler-e2e"
	push := where.start("dashboards", "push", "--url", address, "-o", "json")
	Expect(wait(push)).To(Equal(exitDone))
	var list struct{ Items []struct{ UID, URL string } }
	Expect(json.Unmarshal(push.Out.Contents(), &list)).To(Succeed())
	Expect(list.Items).To(HaveLen(len(must(dashboards.All()))))

	g := realGrafana{must(url.Parse(address))}
	g.call(ctx, http.MethodDelete, "/api/datasources/uid/"+source, nil, nil) // of a spec that failed
	Expect(g.call(ctx, http.MethodPost, "/api/datasources", map[string]any{
		"name": source, "uid": source, "type": "prometheus", "access": "proxy", "url": prometheus,
		"jsonData": map[string]any{"timeInterval": "1s", "httpMethod": "POST"},
	}, nil)).To(Equal(http.StatusOK))
	DeferCleanup(func(ctx SpecContext) {
		Expect(g.call(ctx, http.MethodDelete, "/api/datasources/uid/"+source, nil, nil)).To(Equal(http.StatusOK))
	})

	for _, item := range list.Items {
		var loaded struct{ Dashboard dashboardDocument }
		Expect(g.call(ctx, http.MethodGet, "/api/dashboards/uid/"+item.UID, nil, &loaded)).To(Equal(http.StatusOK))
		for _, q := range loaded.Dashboard.questions() {
			for _, run := range runs {
				g.expectData(ctx, q, source, run, to)
			}
		}
	}
}

// realGrafana is one that runs, asked with the user and password in its URL, or
// the token in GRAFANA_TOKEN.
type realGrafana struct{ base *url.URL }

// expectData has Grafana answer a panel's query over a run; what is left of
// variables in it, Grafana fills in.
func (g realGrafana) expectData(ctx context.Context, q question, source string, run record.Run, to time.Time) {
	GinkgoHelper()
	var answer struct {
		Results map[string]struct {
			Error  string
			Frames []struct{ Data struct{ Values [][]any } }
		}
	}
	status := g.call(ctx, http.MethodPost, "/api/ds/query", map[string]any{
		"from": millis(run.Phases[0].Start), "to": millis(to),
		"queries": []map[string]any{{
			"refId": q.ref, "expr": q.chosen(run), "instant": q.instant, "range": !q.instant,
			"datasource": map[string]string{"type": "prometheus", "uid": source}, "intervalMs": 1000, "maxDataPoints": 1000,
		}},
	}, &answer)
	Expect(status).To(Equal(http.StatusOK), "%s", q)
	result := answer.Results[q.ref]
	Expect(result.Error).To(BeEmpty(), "%s", q)
	n := 0
	for _, frame := range result.Frames {
		if len(frame.Data.Values) > 1 {
			for _, v := range frame.Data.Values[1] {
				if v != nil {
					n++
				}
			}
		}
	}
	Expect(n).NotTo(BeZero(), "%s has no data of %s", q, run.Name)
}

// call returns the status of an answer, which is read into into unless that is
// nil.
func (g realGrafana) call(ctx context.Context, method, path string, body, into any) int {
	GinkgoHelper()
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(must(json.Marshal(body)))
	}
	to := *g.base
	to.User = nil
	request := must(http.NewRequestWithContext(ctx, method, strings.TrimSuffix(to.String(), "/")+path, content))
	request.Header.Set("Content-Type", "application/json")
	if password, ok := g.base.User.Password(); ok {
		request.SetBasicAuth(g.base.User.Username(), password)
	}
	if token := os.Getenv("GRAFANA_TOKEN"); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response := must(http.DefaultClient.Do(request))
	defer response.Body.Close()
	answer := must(io.ReadAll(response.Body))
	if into != nil && response.StatusCode == http.StatusOK {
		Expect(json.Unmarshal(answer, into)).To(Succeed(), fmt.Sprintf("%s %s: %s", method, path, answer))
	}
	return response.StatusCode
}
