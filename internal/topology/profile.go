package topology

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Profile lists what a mesh contains in addition to uniform HTTP services without
// configuration. The zero value means nothing.
type Profile struct {
	VirtualServices  int     // objects that route to services: one for each service, the others for hosts outside the mesh's names
	DestinationRules int     // services with one, with two subsets
	ServiceEntries   int     // hosts outside the cluster
	EnvoyFilters     int     // patches of the sidecars of one service each
	Telemetries      int     // services with one
	TCPServices      int     // services with a TCP port in addition
	HeadlessServices int     // services without an address of their own
	ExternalNames    int     // names that are an alias of a service
	Gateways         int     // ingress gateways of one pod, each with ten hosts
	Zones            int     // that nodes are spread over; 0 = nodes have none
	OutsidePods      int     // pods without sidecars that exist before the mesh
	OutsideChurn     float64 // pods without sidecars that are created and deleted each second, from the rollout on
	ReplicaSkew      float64 // exponent of Zipf's law that pods are dealt to services by; 0 = evenly
	GracePeriod      float64 // seconds for which a deleted pod runs on, terminating; 0 = it disappears at once
}

// None as the value of a part omits it, whatever the named profile has.
const None = -1

// Part is one part of a profile.
type Part struct {
	Name string // of its flag, without dashes
	What string // it is, in the plural, for sentences
	Unit string // of its value; "" = a number
	Of   func(*Profile) float64
	Set  func(*Profile, float64)
	most float64
	// typical returns the value that the profile Typical has for this number of services
	// and pods.
	typical func(services, pods int) float64
}

// number returns a Part that is a whole number.
func number(name, what string, most int, field func(*Profile) *int, typical func(services, pods int) float64) Part {
	return Part{name, what, "", func(p *Profile) float64 { return float64(*field(p)) }, func(p *Profile, v float64) { *field(p) = int(v) }, float64(most), typical}
}

// Text formats a value of the part with its unit, as in 40 or 5s.
func (p Part) Text(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) + p.Unit }

// MaxTCPServices is the number of addresses that a cluster does not assign by itself. A
// TCP service needs such a fixed address, because its listeners are named by it.
const MaxTCPServices = 200

// Parts lists all parts of a profile.
var Parts = []Part{
	number("virtual-services", "VirtualServices", MaxPods, func(p *Profile) *int { return &p.VirtualServices }, func(services, _ int) float64 { return float64(services) }),
	number("destination-rules", "DestinationRules", MaxPods, func(p *Profile) *int { return &p.DestinationRules }, func(services, _ int) float64 { return float64(services / 2) }),
	number("service-entries", "ServiceEntries", MaxPods, func(p *Profile) *int { return &p.ServiceEntries }, func(services, _ int) float64 { return float64(services / 4) }),
	number("envoy-filters", "EnvoyFilters", 10_000, func(p *Profile) *int { return &p.EnvoyFilters }, func(services, _ int) float64 { return math.Ceil(float64(services) / 20) }),
	number("telemetries", "Telemetries", MaxPods, func(p *Profile) *int { return &p.Telemetries }, func(services, _ int) float64 { return math.Ceil(float64(services) / 20) }),
	number("tcp-services", "services with a TCP port", MaxTCPServices, func(p *Profile) *int { return &p.TCPServices }, func(services, _ int) float64 { return math.Min(MaxTCPServices, float64(services/10)) }),
	number("headless-services", "headless services", MaxPods, func(p *Profile) *int { return &p.HeadlessServices }, func(services, _ int) float64 { return float64(services / 20) }),
	number("external-names", "ExternalNames", MaxPods, func(p *Profile) *int { return &p.ExternalNames }, func(services, _ int) float64 { return float64(services / 20) }),
	number("gateways", "gateways", 100, func(p *Profile) *int { return &p.Gateways }, func(services, _ int) float64 { return float64(min(2, services/10)) }),
	number("zones", "zones", 100, func(p *Profile) *int { return &p.Zones }, func(int, int) float64 { return 3 }),
	number("outside-pods", "pods outside the mesh", MaxPods, func(p *Profile) *int { return &p.OutsidePods }, func(_, pods int) float64 { return float64(pods / 4) }),
	{"outside-churn", "pods outside the mesh a second that come and go", "", func(p *Profile) float64 { return p.OutsideChurn }, func(p *Profile, v float64) { p.OutsideChurn = v }, 100, func(int, int) float64 { return 0.5 }},
	{"replica-skew", "replica counts by Zipf's law", "", func(p *Profile) float64 { return p.ReplicaSkew }, func(p *Profile, v float64) { p.ReplicaSkew = v }, 3, func(int, int) float64 { return 1 }},
	{"grace-period", "seconds of grace for pods that are deleted", "s", func(p *Profile) float64 { return p.GracePeriod }, func(p *Profile, v float64) { p.GracePeriod = v }, 300, func(int, int) float64 { return 5 }},
}

// The named profiles.
const (
	Plain   = "plain"   // nothing
	Typical = "typical" // as much of each part as meshes of this size often have
)

// ProfileNames returns the names of profiles.
func ProfileNames() []string { return []string{Plain, Typical} }

// Resolved returns the profile of the mesh: that of its name, overridden by the parts
// that were set.
func (s Spec) Resolved() Profile {
	s = s.Defaults()
	var p Profile
	for _, part := range Parts {
		switch set := part.Of(&s.Own); {
		case set == None:
		case set != 0:
			part.Set(&p, set)
		case s.Profile == Typical:
			part.Set(&p, part.typical(s.Services, s.Pods))
		}
	}
	return p
}

// Only returns the profile reduced to one part.
func (p Profile) Only(part Part) Profile {
	var one Profile
	part.Set(&one, part.Of(&p))
	return one
}

// checkProfile returns a *FieldError for the first part whose value is out of bounds. The
// specification has its defaults.
func (s Spec) checkProfile() error {
	if s.Profile != "" && !slices.Contains(ProfileNames(), s.Profile) {
		return &FieldError{"profile", strconv.Quote(s.Profile), Plain + " or " + Typical}
	}
	for _, part := range Parts {
		if v := part.Of(&s.Own); v != None && !(v >= 0 && v <= part.most) {
			return &FieldError{part.Name, part.Text(v), "0 to " + part.Text(part.most)}
		}
	}
	p := s.Resolved()
	for _, part := range []struct {
		name string
		n    int
	}{
		{"destination-rules", p.DestinationRules}, {"telemetries", p.Telemetries},
		{"tcp-services", p.TCPServices}, {"headless-services", p.HeadlessServices},
	} {
		if part.n > s.Services {
			return &FieldError{part.name, strconv.Itoa(part.n), fmt.Sprintf("0 to %d, no more than services", s.Services)}
		}
	}
	if p.Gateways > s.Pods-s.Services {
		return &FieldError{"gateways", strconv.Itoa(p.Gateways), fmt.Sprintf("0 to %d: each is one of the pods, of which every service has one", s.Pods-s.Services)}
	}
	if p.TCPServices+p.HeadlessServices > s.Services {
		return &FieldError{"headless-services", strconv.Itoa(p.HeadlessServices),
			fmt.Sprintf("0 to %d: a service with a TCP port is not headless, too", s.Services-p.TCPServices)}
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
func (m *Mesh) apply(p Profile) {
	m.Profile = p
	n := len(m.Services)
	for i := range p.TCPServices {
		s := &m.Services[n-1-i]
		s.Address = i + 1
		s.Ports = append(s.Ports, Port{Name: "tcp", Number: 9000, Target: 9000, TCP: true})
	}
	for i := range p.HeadlessServices {
		m.Services[n-1-p.TCPServices-i].Headless = true
	}
	for i := range p.Gateways {
		name := fmt.Sprintf("gateway-%d", i)
		m.Services = append(m.Services, Service{
			Name: name, Namespace: m.Namespaces[0], Account: name, Pods: 1, Gateway: true,
			Ports: []Port{{Name: "http", Number: 80, Target: 8080}},
		})
	}
}

// WithoutGateways returns the services that are not gateways. Gateways come last.
func (m Mesh) WithoutGateways() []Service { return m.Services[:len(m.Services)-m.Profile.Gateways] }

// Text lists the profile's parts, as in "virtual-services 40, zones 3"; "" if it has
// none.
func (p Profile) Text() string {
	var texts []string
	for _, part := range Parts {
		if v := part.Of(&p); v != 0 {
			texts = append(texts, part.Name+" "+part.Text(v))
		}
	}
	return strings.Join(texts, ", ")
}

// Map returns the profile's parts by name; nil if it has none.
func (p Profile) Map() map[string]float64 {
	all := map[string]float64{}
	for _, part := range Parts {
		if v := part.Of(&p); v != 0 {
			all[part.Name] = v
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}
