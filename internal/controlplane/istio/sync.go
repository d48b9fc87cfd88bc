package istio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/httpget"
)

// syncTimeout is the time limit for an istiod to report which proxies are behind.
const syncTimeout = 30 * time.Second

// sync reads which proxies of an istiod are behind: /debug/syncz has what each was sent and has
// acknowledged last. It has nothing of the proxies that wait in the push queue (PushQueue of pilot/pkg/xds),
// so istiod's own counts are read with it: see work.
func (i *instance) sync() *controlplane.Sync {
	return syncOf(i.name, "http://"+local(i.ports.http), "http://"+local(i.ports.monitoring), i.c.opts.Resources.Environment(i.c.environment(i.name)...))
}

// syncOf returns how an istiod of a name and with an environment reports it, by the URLs of the ports of its status and of its metrics.
func syncOf(name, debug, monitoring string, env []string) *controlplane.Sync {
	limits := Limits(env)
	client := &http.Client{Timeout: syncTimeout}
	return &controlplane.Sync{
		// A change is pushed DEBOUNCE_AFTER after the last one, or at most DEBOUNCE_MAX after the first: debounce of
		// pilot/pkg/xds/discovery.go looks for the first time after DEBOUNCE_AFTER, which may be the longer one.
		Debounce: time.Duration(max(limits.DebounceMaxSeconds, limits.DebounceSeconds) * float64(time.Second)),
		Read: func(ctx context.Context) (controlplane.SyncState, error) {
			status, err := httpget.Get(ctx, client, debug+"/debug/syncz")
			if err != nil {
				return controlplane.SyncState{}, fmt.Errorf("asking %s which proxies are behind: %w", name, err)
			}
			// After the status: what happens between the two is in the next reading of the counts.
			metrics, err := httpget.Get(ctx, client, monitoring+"/metrics")
			if err != nil {
				return controlplane.SyncState{}, fmt.Errorf("asking %s what it has pushed: %w", name, err)
			}
			proxies, err := readSync(status)
			if err != nil {
				return controlplane.SyncState{}, fmt.Errorf("reading what %s reports of proxies: %w", name, err)
			}
			return controlplane.SyncState{Proxies: proxies, Work: work(metrics)}, nil
		},
	}
}

// syncStatus is a proxy in /debug/syncz (SyncStatus of pilot/pkg/xds/debug.go): the nonces of what it was sent and
// has acknowledged last, by type.
type syncStatus struct {
	Proxy string `json:"proxy"` // NAME.NAMESPACE of the pod

	ClusterSent          string `json:"cluster_sent"`
	ClusterAcked         string `json:"cluster_acked"`
	ListenerSent         string `json:"listener_sent"`
	ListenerAcked        string `json:"listener_acked"`
	RouteSent            string `json:"route_sent"`
	RouteAcked           string `json:"route_acked"`
	EndpointSent         string `json:"endpoint_sent"`
	EndpointAcked        string `json:"endpoint_acked"`
	ExtensionConfigSent  string `json:"extensionconfig_sent"`
	ExtensionConfigAcked string `json:"extensionconfig_acked"`

	// Resources has all types, the ones above included. Older versions do not report them.
	Resources map[string]struct {
		Sent  string `json:"sent"`
		Acked string `json:"acked"`
	} `json:"resources"`
}

// readSync reads /debug/syncz: for each proxy, whether it has acknowledged the last of every type. Of one that is
// listed twice, as while an old connection ends, both count.
func readSync(status []byte) (map[string]bool, error) {
	var all []syncStatus
	if err := json.Unmarshal(status, &all); err != nil {
		return nil, err
	}
	proxies := map[string]bool{}
	for _, s := range all {
		at := strings.LastIndex(s.Proxy, ".")
		if at < 0 {
			return nil, fmt.Errorf("proxy %q: want NAME.NAMESPACE", s.Proxy)
		}
		id := s.Proxy[at+1:] + "/" + s.Proxy[:at]
		acked := s.ClusterSent == s.ClusterAcked && s.ListenerSent == s.ListenerAcked && s.RouteSent == s.RouteAcked &&
			s.EndpointSent == s.EndpointAcked && s.ExtensionConfigSent == s.ExtensionConfigAcked && (s.ClusterSent != "" || len(s.Resources) > 0)
		for _, r := range s.Resources {
			acked = acked && r.Sent == r.Acked
		}
		if before, twice := proxies[id]; twice {
			acked = acked && before
		}
		proxies[id] = acked
	}
	return proxies, nil
}

// workCounts are istiod's own counts of what it does before anything is sent (monitoring.go of pilot/pkg/xds): the changes
// that it has seen, the pushes that it has begun, with or without a push context of their own, and the proxies that it took out of the push
// queue. While proxies wait in the queue the last one grows: the next one is taken out when a push of one before has ended.
var workCounts = []string{"pilot_inbound_updates", "pilot_debounce_time_count", "pilot_pushcontext_init_seconds_count", "pilot_proxy_queue_time_count", "pilot_xds_pushes"}

// work returns the lines of istiod's metrics that have these counts.
func work(metrics []byte) string {
	var lines []string
	for line := range bytes.Lines(metrics) {
		for _, name := range workCounts {
			if rest, ok := bytes.CutPrefix(line, []byte(name)); ok && len(rest) > 0 && (rest[0] == '{' || rest[0] == ' ') {
				lines = append(lines, string(line))
			}
		}
	}
	return strings.Join(lines, "")
}
