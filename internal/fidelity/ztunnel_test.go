package fidelity

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/pkg/record"
)

func TestCompareCertificates(t *testing.T) {
	start := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	request := func(signed string, began, ended int) wiretap.CertificateRequest {
		return wiretap.CertificateRequest{Signed: signed, Began: at(began), Ended: at(ended), Validity: time.Hour}
	}
	refused := request("b", 10, 20)
	refused.Code = codes.Unauthenticated
	for name, c := range map[string]struct {
		real, simulated []wiretap.CertificateRequest
		want            record.CertificatesCompared
		differ          record.Difference
	}{
		"in another order": {
			real:      []wiretap.CertificateRequest{request("a", 0, 10), request("b", 10, 20)},
			simulated: []wiretap.CertificateRequest{request("b", 0, 10), request("a", 10, 20)},
			want:      record.CertificatesCompared{Real: 2, Simulated: 2, Common: 2, RealAtOnce: 1, SimulatedAtOnce: 1},
		},
		"at once": {
			real:      []wiretap.CertificateRequest{request("a", 0, 10), request("b", 5, 20), request("c", 15, 30)},
			simulated: []wiretap.CertificateRequest{request("a", 0, 10), request("b", 11, 20), request("c", 25, 30)},
			want:      record.CertificatesCompared{Real: 3, Simulated: 3, Common: 3, RealAtOnce: 2, SimulatedAtOnce: 1},
		},
		"one alone, and another outcome": {
			real:      []wiretap.CertificateRequest{request("a", 0, 10), refused},
			simulated: []wiretap.CertificateRequest{request("b", 0, 10)},
			want:      record.CertificatesCompared{Real: 2, Simulated: 1, RealAtOnce: 1, SimulatedAtOnce: 1},
			differ: record.Difference{
				About: "start certificates", Simulated: "b, for 1h0m0s, answered OK",
				Real: "a, for 1h0m0s, answered OK; b, for 1h0m0s, answered Unauthenticated",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen, sum := differencesSeen{}, record.CertificatesCompared{}
			seen.compareCertificates("start", [2][]wiretap.CertificateRequest{c.real, c.simulated}, &sum)
			if sum != c.want {
				t.Errorf("sum is %+v, want %+v", sum, c.want)
			}
			if (c.differ == record.Difference{}) != (len(seen) == 0) || len(seen) > 0 && seen[c.differ] != 1 {
				t.Errorf("differences are %+v, want %+v", seen, c.differ)
			}
		})
	}
}
