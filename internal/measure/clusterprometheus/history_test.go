package clusterprometheus

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// values returns the values of a range at the end of steps, of which the last is the current one.
func values(labels map[string]string, of ...string) map[string]any {
	end := time.Now().Truncate(HistoryStep)
	var all [][]any
	for i, v := range of {
		if v != "" {
			all = append(all, []any{float64(end.Add(-time.Duration(len(of)-1-i) * HistoryStep).Unix()), v})
		}
	}
	return map[string]any{"metric": labels, "values": all}
}

// What a Prometheus does not have, refuses or has in part is not known, and never 0.
func TestHistory(t *testing.T) {
	const partial = `{"status":"success","warnings":["a store is down"],"data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"]]}]}}`
	s, _ := source(t, answers{
		"sum(max by (pod) (rate(container_cpu_usage":       matrix(values(map[string]string{}, "0.5", "", "NaN", "0.25")), // in place of the program's own
		"sum(max by (pod) (max_over_time(process_resident": partial,
		"sum(max by (pod, version) (pilot_xds":             `422 {"status":"error","errorType":"execution","error":"query processing would load too many samples into memory"}`,
		"sum by (type) (max by (pod, type) (rate(pilot_xds_pushes": matrix(
			values(map[string]string{"type": "eds"}, "1", "2"), values(map[string]string{"type": "cds"}, "0", "0"),
			values(map[string]string{"type": "a host, example.com"}, "3", "3"), values(map[string]string{"type": "10.0.0.1"}, "", "4"),
		),
		"sum by (type) (max by (pod, type) (rate(pilot_xds_config_size_bytes_sum": matrix(
			values(map[string]string{"type": "type.googleapis.com/envoy.config.cluster.v3.Cluster"}, "NaN", "2048"), values(map[string]string{"type": "type.googleapis.com/istio.workload.Address"}, "64", ""),
		),
		"sum by (type, event) (max by (pod, type, event) (rate(pilot_k8s_reg": matrix(values(map[string]string{"type": "EndpointSlice", "event": "update"}, "7")),
		"max by (verb)": matrix(values(map[string]string{"verb": "LIST"}, "7")),
	})
	from, to, all, err := s.History(t.Context(), 24*time.Hour)
	if err != nil || to.Sub(from) != 24*time.Hour || time.Since(to) > HistoryStep || !to.Equal(to.Truncate(HistoryStep)) {
		t.Fatalf("%v to %v: %v", from, to, err)
	}
	var got []string
	for _, r := range all {
		line := r.Name + " " + r.Unit + ":"
		for _, k := range r.Kinds {
			line += " " + k.Kind + "="
			for _, v := range k.Values {
				line += fmt.Sprintf("%g@%d,", v.Value, int(to.Sub(v.At)/HistoryStep))
			}
		}
		if r.Err != nil {
			line += " " + r.Err.Error()
		}
		got = append(got, line)
	}
	want := []string{
		"processorTime cores: =0.5@3,0.25@0,",
		"memory B: its answer is not complete: a store is down",
		"proxies : execution: query processing would load too many samples into memory",
		"pushes 1/s: cds=0@1,0@0, eds=1@1,2@0, other=3@1,7@0,",
		"bytesPerPush B: Address=64@1, Cluster=2048@0,",
		"convergenceP50 s: it has no pilot_proxy_convergence_time_bucket",
		"convergenceP99 s: it has no pilot_proxy_convergence_time_bucket",
		"clusterEvents 1/s: EndpointSlice update=7@0,",
		"configurationEvents 1/s: it has no pilot_k8s_cfg_events",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, _, all, err = s.APIServerHistory(t.Context(), time.Hour); err != nil || len(all) != 1 || all[0].Err != nil || all[0].Kinds[0].Kind != "LIST" {
		t.Errorf("%+v, %v", all, err)
	}
}

// A Prometheus that cannot be asked is the reason for all, and one that does not answer is not waited for when the context ends.
func TestHistoryCannotBeAsked(t *testing.T) {
	s, _ := source(t, answers{"count": "401 no", "time()": "401 no"})
	if _, _, _, err := s.History(t.Context(), time.Hour); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("%v, want 401", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hung := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query().Get("query"); {
		case strings.HasPrefix(query, "count"):
			fmt.Fprint(w, counted)
		case query == "time()":
			fmt.Fprint(w, success("scalar", []any{float64(time.Now().Unix()), fmt.Sprint(time.Now().Unix())}))
		case strings.Contains(r.URL.Path, "query_range"):
			cancel()
			<-r.Context().Done()
		}
	}))
	defer hung.Close()
	look := Look(ctx, Options{Address: Address{URL: hung.URL}, Program: istiod})
	if look.Err != nil {
		t.Fatal(look.Err)
	}
	if _, _, _, err := look.History(ctx, time.Hour); err != context.Canceled {
		t.Errorf("%v, want that it was cancelled", err)
	}
}

// A URL is asked with its token, its root certificates and its tenant.
func TestCredentials(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("X-Scope-OrgID") != "team" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answers{"count": counted}.ServeHTTP(w, r)
	}))
	defer server.Close()
	roots := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	all := Options{Address: Address{URL: server.URL}, Program: istiod, Token: "secret", Roots: roots, Tenant: "team", TenantHeader: "X-Scope-OrgID"}
	for want, change := range map[string]func(*Options){
		"":                    func(*Options) {},
		"401":                 func(o *Options) { o.Token = "other" },
		"client error: 401":   func(o *Options) { o.Tenant = "" },
		"failed to verify":    func(o *Options) { o.Roots = nil },
		"have no certificate": func(o *Options) { o.Roots = []byte("no") },
	} {
		o := all
		change(&o)
		if err := Look(t.Context(), o).Err; (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
