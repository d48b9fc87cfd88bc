package record

import "testing"

// Every figure is in one of two groups: what means the same with every control plane, and what does not.
func TestEveryFigureIsKnownAcrossControlPlanes(t *testing.T) {
	used := map[string]bool{}
	for _, f := range Figures() {
		a, ok := AcrossOf(f.Path)
		if !ok {
			t.Errorf("%s is not in AcrossControlPlanes: state whether it means the same with every control plane", f.Path)
		}
		used[a.Path] = true
	}
	seen := map[string]bool{}
	for _, a := range AcrossControlPlanes {
		if !used[a.Path] {
			t.Errorf("%q is the path of no figure", a.Path)
		}
		if seen[a.Path] {
			t.Errorf("%q is there twice", a.Path)
		}
		seen[a.Path] = true
	}
}

func TestAcrossOf(t *testing.T) {
	for path, want := range map[string]struct {
		entry string
		same  bool
	}{
		"phases.rollout.seconds":                                    {"phases", true},
		"controlPlane.rollout.cores.mean":                           {"controlPlane", false},
		"cluster.etcd.rollout.cpuSeconds":                           {"cluster", true},
		"latencies.podReady.p50":                                    {"latencies.podReady", true},
		"latencies.podReadyWithoutKwok.p50":                         {"latencies.podReadyWithoutKwok", true},
		"latencies.push.endpointAdd.p99":                            {"latencies.push.endpointAdd", true},
		"latencies.push.route.p99":                                  {"latencies.push", false},
		"latencies.certificate.p50":                                 {"latencies.certificate", false},
		"churn.latencies.certificate.p50":                           {"latencies.certificate", false},
		"churn.seconds":                                             {"churn", true},
		"churn.attempts":                                            {"churn.attempts", false},
		"faults.kill-control-plane@steady.seconds":                  {"faults", true},
		"faults.slow-api-server:1.5s@steady.attempts":               {"faults.attempts", false},
		"faults.kill-control-plane@steady.controlPlane.cores.mean":  {"controlPlane", false},
		"faults.kill-control-plane@steady.latencies.push.route.p50": {"latencies.push", false},
		"faults.kill-control-plane@steady.latencies.podReady.p50":   {"latencies.podReady", true},
		"xds.perSidecar.bytes":                                      {"xds", false},
	} {
		a, ok := AcrossOf(path)
		if !ok || a.Path != want.entry || (a.Means == "") != want.same {
			t.Errorf("%s: %+v, want %+v", path, a, want)
		}
	}
	if a, ok := AcrossOf("unheard.of"); ok {
		t.Errorf("unheard.of: %+v", a)
	}
}
