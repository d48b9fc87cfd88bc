package topology

import (
	"errors"
	"slices"
	"testing"
)

// A part that was set takes the place of that of the named profile; None leaves it out.
func TestResolved(t *testing.T) {
	plain := Spec{Pods: 400}.Resolved()
	if plain != (Profile{}) || plain.Text() != "" || plain.Map() != nil {
		t.Errorf("plain: %+v", plain)
	}
	typical := Spec{Pods: 400, Profile: Typical}.Resolved()
	want := Profile{40, 20, 10, 2, 2, 4, 2, 2, 2, 3, 100, 0.5, 1, 5}
	if typical != want {
		t.Errorf("typical: %+v, want %+v", typical, want)
	}
	own := Spec{Pods: 400, Profile: Typical, Own: Profile{VirtualServices: 1000, OutsideChurn: None, Zones: None}}.Resolved()
	want.VirtualServices, want.OutsideChurn, want.Zones = 1000, 0, 0
	if own != want {
		t.Errorf("own: %+v, want %+v", own, want)
	}
	if got := ofParts(typical.Map()); got != typical {
		t.Errorf("from its map: %+v", got)
	}
	if text := (Profile{VirtualServices: 40, OutsideChurn: 0.5, GracePeriod: 2.5}).Text(); text != "virtual-services 40, outside-churn 0.5, grace-period 2.5s" {
		t.Error(text)
	}
	for _, part := range Parts {
		only := typical.Only(part)
		if part.Of(&only) != part.Of(&want) && part.Name != "virtual-services" && part.Name != "zones" && part.Name != "outside-churn" || len(only.Map()) != 1 {
			t.Errorf("only %s: %+v", part.Name, only)
		}
	}
}

func TestProfileIsChecked(t *testing.T) {
	for _, c := range []struct {
		spec Spec
		want string // field of the error; "" = none
	}{
		{Spec{Pods: 20, Profile: Typical}, ""},
		{Spec{Pods: 1, Profile: Typical}, ""},
		{Spec{Pods: 5000, Profile: Typical}, ""},
		{Spec{Pods: 20, Profile: "huge"}, "profile"},
		{Spec{Pods: 20, Own: Profile{VirtualServices: -2}}, "virtual-services"},
		{Spec{Pods: 20, Own: Profile{DestinationRules: 3}}, "destination-rules"},
		{Spec{Pods: 20, Own: Profile{Telemetries: 3}}, "telemetries"},
		{Spec{Pods: 20, Own: Profile{TCPServices: 2, HeadlessServices: 1}}, "headless-services"},
		{Spec{Pods: 5000, Own: Profile{TCPServices: 201}}, "tcp-services"},
		{Spec{Pods: 20, Own: Profile{Zones: 101}}, "zones"},
		{Spec{Pods: 20, Services: 20, Own: Profile{Gateways: 1}}, "gateways"},
		{Spec{Pods: 20, Own: Profile{OutsideChurn: 101}}, "outside-churn"},
		{Spec{Pods: 20, Own: Profile{GracePeriod: 301}}, "grace-period"},
	} {
		err := c.spec.Validate()
		var field *FieldError
		if errors.As(err, &field) != (c.want != "") || field != nil && field.Field != c.want {
			t.Errorf("%+v: %v", c.spec, err)
		}
	}
}

// However skewed, every service has a pod, and all pods are dealt.
func TestReplicaSkew(t *testing.T) {
	for _, skew := range []float64{0, 0.5, 1, 3} {
		for _, pods := range []int{1, 7, 40, 400} {
			mesh := Build(Spec{Pods: pods, Seed: 3, Own: Profile{ReplicaSkew: skew}})
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
	mesh := Build(Spec{Pods: 50, Own: Profile{TCPServices: 2, HeadlessServices: 1, Gateways: 2}})
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

// ofParts returns the profile with these parts by name, as Map returns them.
func ofParts(values map[string]float64) Profile {
	var p Profile
	for _, part := range Parts {
		part.Set(&p, values[part.Name])
	}
	return p
}
