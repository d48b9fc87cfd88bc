package component

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSlowed(t *testing.T) {
	length := Time{Variable: "A", Length: 2 * time.Second}
	rate := Time{Variable: "B", PerSecond: 10}
	most := Time{Variable: "C", Length: 20 * time.Second, Most: 30 * time.Second}
	for _, c := range []struct {
		time Time
		env  []string
		k    float64
		want string
	}{
		{length, nil, 1, "A=2s"},
		{length, []string{"AA=9s"}, 4, "A=8s"},
		{length, []string{"A=9s", "A=1s"}, 2.5, "A=2.5s"},
		{length, []string{"A=soon"}, 2, "A=soon"},
		{rate, nil, 4, "B=2.5"},
		{rate, []string{"B=1"}, 8, "B=0.125"},
		{rate, []string{"B=many"}, 8, "B=many"},
		{most, nil, 1.25, "C=25s"},
		{most, nil, 2, "C=30s"},
	} {
		if got := c.time.Slowed(c.env, c.k); got != c.want {
			t.Errorf("%s slowed by %v in %v is %s, want %s", c.time.Variable, c.k, c.env, got, c.want)
		}
	}
}

// readTime matches the places where an edited source reads a time from the environment: the name, and the default.
var readTime = regexp.MustCompile(`(?:[Dd]urationOf|RateOf|requestsPerSecond)\("(\w+)", ([^)]+)\)`)

// A program whose environment sets none of its times has those of its project: the default of each
// variable is the text that the edit replaces, and the value that is known here.
func TestTimesAreTheirProjects(t *testing.T) {
	for name, c := range map[string]struct {
		edits []edit
		times []Time
	}{
		"osm":     {osmEdits, OSMTimes},
		"linkerd": {linkerdEdits, LinkerdTimes},
	} {
		read := map[string]bool{}
		for _, e := range c.edits {
			for _, found := range readTime.FindAllStringSubmatch(e.new, -1) {
				variable, usual := found[1], found[2]
				read[variable] = true
				at := slices.IndexFunc(c.times, func(known Time) bool { return known.Variable == variable })
				if at < 0 {
					t.Errorf("%s: %s is read, and is not known", name, variable)
					continue
				}
				if got, want := valueOf(t, usual), c.times[at]; got != want.Length.Seconds()+want.PerSecond {
					t.Errorf("%s: %s is %s by default, want %v or %v per second", name, variable, usual, want.Length, want.PerSecond)
				}
				switch {
				case e.file == "controller/k8s/resync.go": // which three edits call
					for _, call := range c.edits {
						if strings.Contains(call.new, "resync())") && call.old != strings.Replace(call.new, "resync()", usual, 1) {
							t.Errorf("%s: %s is %s by default, which is not in the text that it replaces:\n%s", name, variable, usual, call.old)
						}
					}
				case e.file == "pkg/messaging/limiter.go":
					if got := workqueueLimiter; !strings.Contains(got, usual) { // which is in the client library's source
						t.Errorf("%s: %s is %s by default, which the client library does not have:\n%s", name, variable, usual, got)
					}
				case variable == "OSM_KEEPALIVE_TIMEOUT": // defaultServerKeepaliveTimeout of gRPC's internal/transport/defaults.go
				case variable == "OSM_WEBHOOK_TIMEOUT" && strings.Contains(e.old, "int32(20)"): // in seconds
				case !strings.Contains(e.old, usual):
					t.Errorf("%s: %s is %s by default, which is not in the text that it replaces:\n%s", name, variable, usual, e.old)
				}
			}
		}
		for _, known := range c.times {
			if !read[known.Variable] {
				t.Errorf("%s: %s is read nowhere", name, known.Variable)
			}
			if known.What == "" || (known.Length == 0) == (known.PerSecond == 0) {
				t.Errorf("%s: %+v is not one time with a meaning", name, known)
			}
		}
	}
}

// valueOf returns a constant of a source in Go, in seconds or per second.
func valueOf(t *testing.T, text string) float64 {
	t.Helper()
	product := 1.0
	for factor := range strings.SplitSeq(strings.SplitN(text, "/", 2)[0], "*") {
		switch factor = strings.TrimSpace(factor); factor {
		case "time.Second":
		case "time.Minute":
			product *= 60
		case "time.Millisecond":
			product /= 1000
		default:
			number, err := strconv.ParseFloat(factor, 64)
			if err != nil {
				t.Fatalf("reading %q: %v", text, err)
			}
			product *= number
		}
	}
	return product
}
