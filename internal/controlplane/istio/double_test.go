package istio

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// A ServiceEntry may have the host of a Service. In one namespace istiod adds its endpoints to those of the Service; sidecars of another
// namespace may have the one or the other, with its ports: https://istio.io/latest/docs/reference/config/networking/service-entry/
func TestHostOfServiceAndEntry(t *testing.T) {
	const cluster, whole, some, host = "CDS outbound|80||web.b.svc.cluster.local", "EDS outbound|80||web.b.svc.cluster.local of b/web:http", "EDS outbound|80||web.b.svc.cluster.local", "web.b.svc.cluster.local"
	const entry = "{hosts: [web.b.svc.cluster.local], resolution: STATIC, ports: [{number: 9000, name: http, protocol: HTTP}], endpoints: [{address: 192.0.2.31}]"
	in := func(namespace, more string) string {
		return strings.Replace(serviceEntry("double", entry+more+"}"), "namespace: b", "namespace: "+namespace, 1)
	}
	for _, c := range []struct {
		name, objects string
		client, own   []string // what of the Service a client of another namespace must hold, and its own pods
	}{
		{"none", "", []string{cluster, whole}, []string{cluster, whole}},
		{"of its namespace", in("b", ""), []string{cluster, some}, []string{cluster, some}},
		{"of another namespace", in("a", ""), nil, []string{cluster, whole}},
		{"of another namespace, exported to none", in("a", `, exportTo: ["~"]`), []string{cluster, whole}, []string{cluster, whole}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReplayed(configuration{&ControlPlane{}}, readMesh(t, c.objects))
			for workload, want := range map[int][]string{0: c.client, 2: c.own} {
				var got []string
				for _, text := range textsOf(r, workload) {
					switch {
					case strings.HasPrefix(text, "RDS 80") && strings.Contains(text, host) != (want != nil):
						t.Errorf("workload %d: %s", workload, text)
					case strings.Contains(text, "outbound|") && strings.Contains(text, "|"+host):
						got = append(got, text)
					}
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Errorf("workload %d must hold %v, want %v", workload, got, want)
				}
			}
			unchecked := slices.ContainsFunc(r.notChecked(), func(n record.NotChecked) bool {
				return n.What == record.UncheckedEndpoints && slices.Contains(n.Examples, "b/web")
			})
			if unchecked != (c.objects != "") {
				t.Errorf("not checked: %v", r.notChecked())
			}
		})
	}
}
