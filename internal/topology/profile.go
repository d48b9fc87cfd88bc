package topology

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// MaxTCPServices is the number of addresses that a cluster does not assign by itself. A
// TCP service needs such a fixed address, because its listeners are named by it.
const MaxTCPServices = 200

// The named profiles.
const (
	Plain   = "plain"   // nothing
	Typical = "typical" // as much of each part as meshes of this size often have
)

// typical returns the parts of the profile Typical for so many services and pods.
func typical(services, pods int) scenario.Parts {
	twentieth := (services + 19) / 20
	return scenario.Parts{
		VirtualServices: new(services), DestinationRules: new(services / 2), ServiceEntries: new(services / 4),
		EnvoyFilters: new(twentieth), Telemetries: new(twentieth),
		TCPServices: new(min(MaxTCPServices, services/10)), HeadlessServices: new(services / 20), ExternalNames: new(services / 20),
		Gateways: new(min(2, services/10)), Zones: new(3), OutsidePods: new(pods / 4), OutsideChurn: new(0.5), ReplicaSkew: new(1.0),
		GracePeriod: new(scenario.Duration(5 * time.Second)),
	}
}

// Value returns the value of a part of a mesh, or 0 if the mesh does not have it.
func Value[T any](part *T) (v T) {
	if part != nil {
		v = *part
	}
	return v
}

// Resolved returns the parts of the mesh: those of its profile, overridden by its own. None is 0.
func (s Spec) Resolved() scenario.Parts {
	s = s.Defaults()
	var named scenario.Parts
	if s.Profile == Typical {
		named = typical(s.Services, s.Pods)
	}
	return s.Own.Over(named)
}

// checkProfile returns an error for the first part that goes beyond the mesh. The
// specification has its defaults.
func (s Spec) checkProfile() error {
	p := s.Resolved()
	for _, part := range []struct {
		path string
		n    *int
	}{
		{"mesh.parts.destinationRules", p.DestinationRules}, {"mesh.parts.telemetries", p.Telemetries},
		{"mesh.parts.tcpServices", p.TCPServices}, {"mesh.parts.headlessServices", p.HeadlessServices},
	} {
		if n := Value(part.n); n > s.Services {
			return scenario.Refuse(part.path, n, "0 to %d, no more than services", s.Services)
		}
	}
	if n := Value(p.Gateways); n > s.Pods-s.Services {
		return scenario.Refuse("mesh.parts.gateways", n, "0 to %d: each is one of the pods, of which every service has one", s.Pods-s.Services)
	}
	if tcp, headless := Value(p.TCPServices), Value(p.HeadlessServices); tcp+headless > s.Services {
		return scenario.Refuse("mesh.parts.headlessServices", headless, "0 to %d: a service with a TCP port is not headless, too", s.Services-tcp)
	}
	return nil
}

// shares returns the number of pods of each service: by Zipf's law of their rank, which
// the seed decides, and at least one.
func (s Spec) shares(skew float64) []int {
	all := make([]int, s.Services)
	if !(skew > 0) {
		for i := range all {
			all[i] = s.Pods / s.Services
			if i < s.Pods%s.Services {
				all[i]++
			}
		}
		return all
	}
	sum := 0.0
	for rank := range s.Services {
		sum += math.Pow(float64(rank+1), -skew)
	}
	left := s.Pods - s.Services // after one for each
	given, due := 0, 0.0
	ranks := rand.New(rand.NewPCG(s.Seed, 1)).Perm(s.Services)
	for rank, i := range ranks {
		due += float64(left) * math.Pow(float64(rank+1), -skew) / sum
		more := int(math.Round(due)) - given
		all[i], given = 1+more, given+more
	}
	return all
}

// apply applies a profile to the mesh's services: the last ones get a TCP port, those
// before them become headless. Gateways are appended.
func (m *Mesh) apply(p scenario.Parts) {
	m.Profile = p
	n, tcp := len(m.Services), Value(p.TCPServices)
	for i := range tcp {
		s := &m.Services[n-1-i]
		s.Address = i + 1
		s.Ports = append(s.Ports, Port{Name: "tcp", Number: 9000, Target: 9000, TCP: true})
	}
	for i := range Value(p.HeadlessServices) {
		m.Services[n-1-tcp-i].Headless = true
	}
	for i := range Value(p.Gateways) {
		name := fmt.Sprintf("gateway-%d", i)
		m.Services = append(m.Services, Service{
			Name: name, Namespace: m.Namespaces[0], Account: name, Pods: 1, Gateway: true,
			Ports: []Port{{Name: "http", Number: 80, Target: 8080}},
		})
	}
}

// WithoutGateways returns the services that are not gateways. Gateways come last.
func (m Mesh) WithoutGateways() []Service {
	return m.Services[:len(m.Services)-Value(m.Profile.Gateways)]
}
