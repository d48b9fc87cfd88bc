package scenario

import (
	"fmt"
	"testing"
	"time"
)

// textual is a value that reads itself from text and writes itself.
type textual[T any] interface {
	*T
	UnmarshalText([]byte) error
}

func parse[T any, P textual[T]](text string) (v T, err error) {
	err = P(&v).UnmarshalText([]byte(text))
	return v, err
}

// check checks what texts are, and which are refused.
func check[T comparable, P textual[T]](t *testing.T, good map[string]T, bad []string) {
	t.Helper()
	for text, want := range good {
		if got, err := parse[T, P](text); err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range bad {
		if got, err := parse[T, P](text); err == nil || got != *new(T) {
			t.Errorf("%q is %+v, %v, want an error and nothing", text, got, err)
		}
	}
}

func TestArrival(t *testing.T) {
	check(t, map[string]Arrival{
		"all": {}, "100/10s": {Size: 100, Interval: 10 * time.Second}, "1/1ms": {Size: 1, Interval: time.Millisecond},
		"100000/1h": {Size: 100_000, Interval: time.Hour}, "5/1m30s": {Size: 5, Interval: 90 * time.Second},
		"15/s": {Rate: 15}, "0.5/s": {Rate: 0.5}, "1000/s": {Rate: 1000}, "0.01/s": {Rate: 0.01}, "stock": {Rate: 20},
	}, []string{
		"", "5x", "ALL", "100", "100/", "/10s", "100/10", "100/10s/5", "1e3/10s", " 1/10s", "0/10s", "-5/10s", "1000000000/10s", "100/0s",
		"100/-10s", "100/2h", "15", "15/m", "0/s", "-1/s", "NaN/s", "1e9/s", "0.009/s",
	})
	for text, want := range map[string]time.Duration{"15/s": 66666666, "0.5/s": 2 * time.Second, "stock": 50 * time.Millisecond} {
		a, err := parse[Arrival](text)
		if size, interval := a.Bursts(); err != nil || size != 1 || interval != want {
			t.Errorf("%s is bursts of %d each %s, want 1 each %s", text, size, interval, want)
		}
	}
	for text, want := range map[string]string{"all": "all", "20/s": "5/s", "100/10s": "100/40s"} {
		if a, _ := parse[Arrival](text); a.Slowed(4).String() != want {
			t.Errorf("%s four times as slow is %s, want %s", text, a.Slowed(4), want)
		}
	}
}

// TestWants checks what errors of values state that is wanted.
func TestWants(t *testing.T) {
	const (
		arrival = `, want all, SIZE/INTERVAL as in 100/10s, or pods a second as in 20/s`
		rates   = `, want from 0.01/s to 1000/s`
		shares  = ", want shares of the pods, as in 10%,50%,100%"
		above   = ", want shares above 0% and up to 100%"
		ascend  = ", want ascending shares, each with the ones before it, as in 10%,50%,100%"
	)
	for _, test := range []struct {
		value interface{ UnmarshalText([]byte) error }
		text  string
		want  string
	}{
		{new(Arrival), "", arrival}, {new(Arrival), "15", arrival}, {new(Arrival), "15/m", arrival}, {new(Arrival), "0/s", rates},
		{new(Arrival), "-1/s", rates}, {new(Arrival), "NaN/s", rates}, {new(Arrival), "1e9/s", rates}, {new(Arrival), "0.009/s", rates},
		{new(Arrival), "0/10s", ", want a size of 1 to 100000"}, {new(Arrival), "100/2h", ", want an interval of 1ms to 1h"},
		{new(Shares), "", shares}, {new(Shares), "10", shares}, {new(Shares), "NaN%", above}, {new(Shares), "0%,100%", above}, {new(Shares), "101%", above},
		{new(Shares), "50%,50%,100%", ascend}, {new(Shares), "100%,50%", ascend}, {new(Shares), "10%,50%,99.9%", ", want 100% as the last share: an upgrade moves all pods"},
		{new(Dilation), "0.5", ", want from 1 to 64, or auto"}, {new(Dilation), "-2", ", want from 1 to 64, or auto"}, {new(Dilation), "65", ", want from 1 to 64, or auto"},
		{new(Bytes), "512m", ", want bytes with a unit, as in 512Mi, 2Gi or 1G"}, {new(Rate), "5", ", want a rate, as in 5/s"}, {new(Rate), "1001/s", rates},
	} {
		want := fmt.Sprintf("got %q%s", test.text, test.want)
		if err := test.value.UnmarshalText([]byte(test.text)); err == nil || err.Error() != want {
			t.Errorf("%T: %v, want %s", test.value, err, want)
		}
	}
}

func TestRate(t *testing.T) {
	check(t, map[string]Rate{"2/s": 2, "31.2/s": 31.2, "0.01/s": 0.01, "1000/s": 1000},
		[]string{"", "5x", "2", "/s", "2/m", "0/s", "-1/s", "1001/s", "NaN/s", "Inf/s", "1e999/s"})
	for n, want := range []time.Duration{0, 500 * time.Millisecond, time.Second} {
		if got := Rate(2).Due(n); got != want {
			t.Errorf("event %d of 2/s is due after %s, want %s", n, got, want)
		}
	}
}

func TestDelay(t *testing.T) {
	check(t, map[string]Delay{
		"2s": {Mean: 2 * time.Second}, "0s": {}, "constant:150ms": {Mean: 150 * time.Millisecond}, "uniform:1s-5s": {Min: time.Second, Max: 5 * time.Second},
		"uniform:2s-2s": {Min: 2 * time.Second, Max: 2 * time.Second}, "exponential:2s": {Exponential: true, Mean: 2 * time.Second},
	}, []string{"", "2", "-2s", "2h", "uniform:5s-1s", "uniform:1s", "uniform:1s-", "uniform:-1s-5s", "exponential:", "exponential:-1s", "normal:1s", ":1s"})
}

func TestDelaySpread(t *testing.T) {
	for text, want := range map[string]time.Duration{"0s": 0, "2s": 0, "uniform:1s-5s": 4 * time.Second, "exponential:2s": 4 * time.Second} {
		var d Delay
		if err := d.UnmarshalText([]byte(text)); err != nil || d.Spread() != want {
			t.Errorf("%s: %v, %v, want %v", text, d.Spread(), err, want)
		}
	}
}

func TestDelayOf(t *testing.T) {
	const pods = 20_000
	mean := func(d Delay) (mean, least, most time.Duration) {
		least = time.Hour
		var sum time.Duration
		for n := range pods {
			v := d.Of(7, n)
			if v != d.Of(7, n) {
				t.Fatalf("%s: pod %d has two delays", d, n)
			}
			sum += v
			least, most = min(least, v), max(most, v)
		}
		return sum / pods, least, most
	}
	about := func(got, want time.Duration) bool { return got > want*97/100 && got < want*103/100 }

	if m, least, most := mean(Delay{Mean: 2 * time.Second}); m != 2*time.Second || least != m || most != m {
		t.Errorf("constant: %s to %s, mean %s", least, most, m)
	}
	if m, least, most := mean(Delay{Min: time.Second, Max: 5 * time.Second}); !about(m, 3*time.Second) || least < time.Second || most > 5*time.Second {
		t.Errorf("uniform: %s to %s, mean %s", least, most, m)
	}
	if m, _, most := mean(Delay{Exponential: true, Mean: 2 * time.Second}); !about(m, 2*time.Second) || most > 20*time.Second {
		t.Errorf("exponential: up to %s, mean %s", most, m)
	}
	if d := (Delay{Max: time.Hour}); d.Of(1, 5) == d.Of(2, 5) {
		t.Error("the seed changes nothing")
	}
	if d := (Delay{}); d.Of(1, 1) != 0 {
		t.Error("no delay is a delay")
	}
}

func TestBytes(t *testing.T) {
	check(t, map[string]Bytes{"512Mi": 512 << 20, "2Gi": 2 << 30, "1G": 1e9, "0.5Gi": 512 << 20, "100": 100, "1.5": 2, "1k": 1000, "1.5Gi": 3 << 29, "67108864": 64 << 20, "1e9": 1e9, "16Ti": 1 << 44},
		[]string{"", "5x", "512m", "512 Mi", "512MB", "1e30", "0x10", "Mi", "-1Mi", "1Gb", "0x1p3", "1_000", "NaN", "1e30Gi", "Inf"})
	for b, want := range map[Bytes]string{512 << 20: "512Mi", 1e9: "1000000000", 3 << 30: "3Gi", 0: "0"} {
		if b.String() != want {
			t.Errorf("%d prints as %s, want %s", int64(b), b, want)
		}
	}
}

func TestDurationPrints(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 90 * time.Second: "1m30s", time.Minute: "1m", time.Hour: "1h", 61 * time.Minute: "1h1m", 1500 * time.Millisecond: "1.5s", 10 * time.Second: "10s"} {
		if got := Duration(d).String(); got != want {
			t.Errorf("%s prints as %s, want %s", d, got, want)
		}
	}
}

func TestDilation(t *testing.T) {
	check(t, map[string]Dilation{"1": {Factor: 1}, "2.5": {Factor: 2.5}, "64": {Factor: 64}, "auto": {Auto: true}}, []string{"", "0", "0.5", "-1", "x", "Auto", "2x", "NaN", "65"})
}

func TestShares(t *testing.T) {
	for text, want := range map[string]string{"10%,50%,100%": "10%,50%,100%", "100%": "100%", "1.5%, 100%": "1.5%,100%"} {
		if s, err := parse[Shares](text); err != nil || s.String() != want {
			t.Errorf("%s is %s, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "10", "10%,50%", "50%,10%,100%", "50%,50%,100%", "0%,100%", "-5%,100%", "101%", "NaN%,100%", "x%", "50%,,100%"} {
		if s, err := parse[Shares](text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}

func TestFault(t *testing.T) {
	good := map[string]Fault{
		"kill-control-plane@steady":     {Kind: KillControlPlane, Phase: PhaseSteady},
		"restart-control-plane@rollout": {Kind: RestartControlPlane, Phase: PhaseRollout},
		"reset-streams:20%@steady":      {Kind: ResetStreams, Share: 0.2, Phase: PhaseSteady},
		"reset-streams:0.5%@rollout":    {Kind: ResetStreams, Share: 0.005, Phase: PhaseRollout},
		"reset-streams:100%@steady":     {Kind: ResetStreams, Share: 1, Phase: PhaseSteady},
		"api-server-gone:10s@rollout":   {Kind: APIServerGone, Time: 10 * time.Second, Phase: PhaseRollout},
		"pause-scaler:1m30s@steady":     {Kind: PauseScaler, Time: 90 * time.Second, Phase: PhaseSteady},
		"kill-control-plane@probe":      {Kind: KillControlPlane, Phase: PhaseProbe},
		"reset-streams:5%@probe":        {Kind: ResetStreams, Share: 0.05, Phase: PhaseProbe},
		"rolling-restart@steady":        {Kind: RollingRestart, Phase: PhaseSteady},
		"kill-replica@probe":            {Kind: KillReplica, Phase: PhaseProbe},
		"add-replica@rollout":           {Kind: AddReplica, Phase: PhaseRollout},
		"kill-control-plane:web@steady": {Kind: KillControlPlane, Program: "web", Phase: PhaseSteady},
		"restart-replica@steady":        {Kind: RestartReplica, Phase: PhaseSteady},
		"restart-replicas@steady":       {Kind: RestartReplicas, Phase: PhaseSteady},
	}
	check(t, good, []string{
		"", "@", "@steady", "kill-control-plane", "kill-control-plane@", "pause-scaler:5s@probe", "api-server-gone:5s@probe", "rolling-restart@probe", "kill-control-plane@baseline",
		"kill-control-plane@Steady", "kill-control-plane:@steady", "rolling-restart@steady@steady",
		"reset-streams@steady", "reset-streams:@steady", "reset-streams:20@steady", "reset-streams:0%@steady", "reset-streams:-1%@steady",
		"reset-streams:101%@steady", "reset-streams:NaN%@steady", "reset-streams:x%@steady",
		"api-server-gone@steady", "api-server-gone:0s@steady", "api-server-gone:11m@steady", "pause-scaler:5@steady", "pause-scaler:-5s@steady",
		"burn-it-down@steady", "kill-replica:1@steady", "add-replica@baseline",
	})
	for text, f := range good {
		if f.String() != text {
			t.Errorf("%q prints as %q", text, f)
		}
	}
}

func TestChanges(t *testing.T) {
	check(t, map[string]Changes{
		"5/s": {5, EndpointChange}, "5/s:endpoint": {5, EndpointChange}, "0.5/s:route": {0.5, RouteChange}, "1e2/s:policy": {100, PolicyChange},
		"0.01/s:meshwide": {0.01, MeshWideChange}, "1000/s:metadata": {1000, MetadataChange}, "2/s:route-metadata": {2, RouteMetadataChange},
	}, []string{"", "5", "5/m", "/s", "0/s", "-1/s", "1001/s", "NaN/s", "Inf/s", "5/s:", "5/s:pod", "5/s:route:x", "route", "5x:route"})
	if got := (Changes{}).String(); got != "" {
		t.Errorf("no changes print as %q", got)
	}
}

// FuzzValues checks that what is taken as any of the values is the same once printed and read
// again, and that schedules keep their bounds.
func FuzzValues(f *testing.F) {
	for _, s := range []string{
		"15/s", "stock", "1e3/s", "all", "100/10s", "2s", "uniform:1s-5s", "exponential:2s", "uniform:0s-0s", "31.2/s:route", "kill-control-plane@steady",
		"reset-streams:20%@rollout", "api-server-gone:10s@steady", "x:1@y", "10%,100%", "512Mi", "1.5Ki", "auto", "2.5", "0x1p-3/s",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		again(t, s, func(a Arrival) string {
			if a.Size != 0 && (a.Size < 1 || a.Size > MaxPods || a.Interval < minBurstSpacing || a.Interval > maxBurstSpacing) {
				t.Errorf("%q is %+v, out of bounds", s, a)
			}
			size, interval := a.Bursts()
			burst := Arrival{Size: size, Interval: interval}
			if same, err := parse[Arrival](burst.String()); err != nil || same != burst {
				t.Errorf("%q is the bursts %s, which are %+v, %v", s, burst, same, err)
			}
			return a.String()
		})
		again(t, s, func(d Delay) string {
			if got := d.Of(1, 1); got < 0 || got > exponentialBound*maxDelay {
				t.Errorf("%q: delay of %s", s, got)
			}
			return d.String()
		})
		again(t, s, func(b Bytes) string { return b.String() })
		again(t, s, func(d Duration) string { return d.String() })
		again(t, s, func(d Dilation) string { return d.String() })
		again(t, s, func(f Fault) string { return f.Name() + "@" + f.Phase })
		again(t, s, func(r Rate) string {
			if due := r.Due(1); due < time.Millisecond || due > 100*time.Second {
				t.Errorf("%q: the second event is due after %s", s, due)
			}
			return r.String()
		})
		again(t, s, func(c Changes) string {
			const length = 10 * time.Second
			if n := c.Count(length); n < 1 || c.PerSecond.Due(n-1) >= length || c.PerSecond.Due(n) < length {
				t.Errorf("%q: %d changes in %s, the last at %s, the next at %s", s, n, length, c.PerSecond.Due(n-1), c.PerSecond.Due(n))
			}
			return c.String()
		})
	})
}

func again[T any, P textual[T]](t *testing.T, text string, printed func(T) string) {
	t.Helper()
	v, err := parse[T, P](text)
	if err != nil || printed(v) == "" {
		return
	}
	once, err := parse[T, P](printed(v))
	if err != nil || printed(once) != printed(v) {
		t.Errorf("%q is printed as %q, which is %q, %v", text, printed(v), printed(once), err)
	}
}
