package topology

import (
	"errors"
	"slices"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// A part that is stated takes the place of that of the named profile; 0 leaves it out.
func TestResolved(t *testing.T) {
	if plain := (Spec{Pods: 400}).Resolved(); plain != (scenario.Parts{}) {
		t.Errorf("plain: %s", plain)
	}
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Pods: 400, Profile: Typical}, "virtualServices 40, destinationRules 20, serviceEntries 10, envoyFilters 2, telemetries 2, tcpServices 4, headlessServices 2, externalNames 2, gateways 2, zones 3, outsidePods 100, outsideChurn 0.5, replicaSkew 1, gracePeriod 5s"},
		{Spec{Pods: 10, Profile: Typical}, "virtualServices 1, envoyFilters 1, telemetries 1, zones 3, outsidePods 2, outsideChurn 0.5, replicaSkew 1, gracePeriod 5s"},
		{Spec{Pods: 400, Profile: Typical, Own: scenario.Parts{VirtualServices: new(1000), OutsideChurn: new(0.0), Zones: new(0)}}, "virtualServices 1000, destinationRules 20, serviceEntries 10, envoyFilters 2, telemetries 2, tcpServices 4, headlessServices 2, externalNames 2, gateways 2, outsidePods 100, replicaSkew 1, gracePeriod 5s"},
		{Spec{Pods: 400, Own: scenario.Parts{Zones: new(2), GracePeriod: new(scenario.Duration(0))}}, "zones 2"},
	} {
		if got := c.spec.Resolved().String(); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.spec, got, c.want)
		}
	}
}

func TestProfileIsChecked(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string // path of the error; "" = none
	}{
		{Spec{Pods: 20, Profile: Typical}, ""},
		{Spec{Pods: 1, Profile: Typical}, ""},
		{Spec{Pods: 5000, Profile: Typical}, ""},
		{Spec{Pods: 20, Own: scenario.Parts{DestinationRules: new(3)}}, "mesh.parts.destinationRules"},
		{Spec{Pods: 20, Own: scenario.Parts{Telemetries: new(3)}}, "mesh.parts.telemetries"},
		{Spec{Pods: 20, Own: scenario.Parts{TCPServices: new(3)}}, "mesh.parts.tcpServices"},
		{Spec{Pods: 20, Own: scenario.Parts{TCPServices: new(2), HeadlessServices: new(1)}}, "mesh.parts.headlessServices"},
		{Spec{Pods: 20, Services: 20, Own: scenario.Parts{Gateways: new(1)}}, "mesh.parts.gateways"},
	} {
		err := c.spec.Validate()
		var field *scenario.Error
		if errors.As(err, &field) != (c.want != "") || field != nil && field.Path != c.want {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
}

// However skewed, every service has a pod, and all pods are dealt.
func TestReplicaSkew(t *testing.T) {
	for _, skew := range []float64{0, 0.5, 1, 3} {
		for _, pods := range []int{1, 7, 40, 400} {
			mesh := Build(Spec{Pods: pods, Seed: 3, Own: scenario.Parts{ReplicaSkew: &skew}})
			sum, least, most := 0, pods, 0
			for _, s := range mesh.Services {
				sum, least, most = sum+s.Pods, min(least, s.Pods), max(most, s.Pods)
			}
			if sum != pods || least < 1 || skew == 0 && most-least > 1 || skew >= 1 && pods == 400 && most < 60 {
				t.Errorf("skew %g of %d pods: %d pods, from %d to %d", skew, pods, sum, least, most)
			}
		}
	}
}

func TestServicesOfAProfile(t *testing.T) {
	mesh := Build(Spec{Pods: 50, Own: scenario.Parts{TCPServices: new(2), HeadlessServices: new(1), Gateways: new(2)}})
	pods := 0
	for _, s := range mesh.Services {
		pods += s.Pods
	}
	if pods != 50 || len(mesh.WithoutGateways()) != 5 {
		t.Errorf("%d pods, %d services without gateways", pods, len(mesh.WithoutGateways()))
	}
	var kinds []string
	for _, s := range mesh.Services {
		switch {
		case s.Gateway:
			kinds = append(kinds, "gateway")
		case s.Headless:
			kinds = append(kinds, "headless")
		case len(s.Ports) == 2 && s.Ports[1].TCP && s.Address > 0:
			kinds = append(kinds, "tcp")
		default:
			kinds = append(kinds, "http")
		}
	}
	if want := []string{"http", "http", "headless", "tcp", "tcp", "gateway", "gateway"}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
	if mesh.Services[3].Address == mesh.Services[4].Address {
		t.Error("two services have one address")
	}
}
