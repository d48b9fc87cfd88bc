package attach

import (
	"errors"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/doctor"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
)

// Without --prometheus-url nothing is checked, and one that cannot be asked is a warning.
func TestCheckPrometheus(t *testing.T) {
	found := &Found{}
	if source := lookForPrometheus(t.Context(), Target{}, found); source != nil {
		t.Errorf("without an address: %+v", source)
	}
	target := Target{Prometheus: clusterprometheus.Address{Detect: true}}
	r := checkPrometheus(lookForPrometheus(t.Context(), target, found))
	if r.Status != doctor.Warning || !strings.Contains(r.Detail, "detect: the cluster has no pods of the control plane") || !strings.Contains(r.Fix, "scaler-prometheus") {
		t.Errorf("%+v", r)
	}
	service := clusterprometheus.Address{Service: clusterprometheus.Service{Namespace: "monitoring", Name: "prometheus", Port: "9090"}}
	r = checkPrometheus(&clusterprometheus.Source{Address: service, Err: errors.New("a\nb")})
	if r.Status != doctor.Warning || r.Detail != "service:monitoring/prometheus:9090: a; b: a record will not have its figures" {
		t.Errorf("%+v", r)
	}
	if r := checkPrometheus(&clusterprometheus.Source{Address: service}); r.Status != doctor.OK || r.Fix != "" || r.Detail != "service:monitoring/prometheus:9090 has metrics of the control plane" {
		t.Errorf("%+v", r)
	}
}
