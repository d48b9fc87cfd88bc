package fidelity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	polling "k8s.io/apimachinery/pkg/util/wait"

	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/internal/ztunnel/real"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/record"
)

// ztunnelTypes are the types that a ztunnel subscribes to.
var ztunnelTypes = []string{ztunnel.Address.String(), ztunnel.Authorization.String()}

const ztunnelsWork = "the real one's takes longer by ztunnel's own work (reading Addresses); the time spent waiting for istiod is compared on its own"

// certificateTime limits the delay of one side's certificate requests after the other's.
const certificateTime = 10 * time.Second

// findZtunnel determines the version of the real ztunnel, before anything is started.
func (r *run) findZtunnel(ctx context.Context) (err error) {
	if r.spec.Ztunnel == "" {
		return nil
	}
	if r.spec.Ztunnel, err = filepath.Abs(r.spec.Ztunnel); err != nil {
		return err
	}
	r.result.Ztunnel, err = real.Version(ctx, r.spec.Ztunnel)
	return err
}

// makePlace makes the network namespace of the real ztunnel.
func (r *run) makePlace(context.Context) (_ steps.Undo, err error) {
	if r.spec.Ztunnel == "" {
		return nil, nil
	}
	if r.place, err = real.NewPlace(); err != nil {
		return nil, err
	}
	return func(context.Context) error { return r.place.Close() }, nil
}

// makeZtunnels makes two pods of ztunnel on one node, as there are while its DaemonSet is
// updated with a surge: both serve the same pods.
func (r *run) makeZtunnels(ctx context.Context) error {
	account, set := r.istiod.Parts().Nodes.Objects()
	account.Labels[kwok.RunLabel] = runName
	if _, err := r.Client.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the account of ztunnel: %w", err)
	}
	node, err := r.fullestNode(ctx)
	if err != nil {
		return err
	}
	pods := r.Client.CoreV1().Pods(set.Namespace)
	for side := range r.pods {
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Name, pod.Labels[kwok.RunLabel] = fmt.Sprintf("%s-%d", set.Name, side), runName // as long as each other
		pod.Spec.NodeName = node
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating pod %s: %w", pod.Name, err)
		}
		err := polling.PollUntilContextTimeout(ctx, 50*time.Millisecond, waitTimeout, true, func(ctx context.Context) (_ bool, err error) {
			r.pods[side], err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
			return err == nil && r.pods[side].Status.PodIP != "", err
		})
		if err != nil {
			return errors.Join(fmt.Errorf("waiting for pod %s to have an address", pod.Name), err)
		}
	}
	return nil
}

// fullestNode returns the node with the most pods of the mesh: a node without any would
// have no certificates to compare.
func (r *run) fullestNode(ctx context.Context) (node string, err error) {
	pods, err := r.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: kwok.ServiceLabel})
	if err != nil {
		return "", fmt.Errorf("listing the pods of the mesh: %w", err)
	}
	count := map[string]int{}
	for i := range pods.Items {
		name := pods.Items[i].Spec.NodeName
		if count[name]++; count[name] > count[node] {
			node = name
		}
	}
	return node, nil
}

// startZtunnel starts the real ztunnel of its pod.
func (r *run) startZtunnel(ctx context.Context) (*tappedProxy, error) {
	pod := r.pods[realSide]
	identity, err := r.istiod.Spec(pod)
	if err != nil {
		return nil, err
	}
	r.nodes[realSide] = identity.NodeID
	token, err := authority.Tokens(r.Client)(identity.Token).Token(ctx)
	if err != nil {
		return nil, err
	}
	cluster, _ := identity.Metadata["CLUSTER_ID"].(string)
	before := len(r.tap.Streams(identity.NodeID))
	z, err := r.place.Start(real.Options{
		Group: r.group, Program: r.spec.Ztunnel,
		// In the group's folder, where `scaler cleanup` finds it, because it contains a
		// token.
		Dir: filepath.Join(r.group.Dir(), real.Name), Log: filepath.Join(r.logDir(), real.Name+".log"),
		Address: r.inside, RootPEM: identity.RootPEM, Token: token.Value,
		Pod: pod.Name, Namespace: pod.Namespace, Account: pod.Spec.ServiceAccountName,
		IP: pod.Status.PodIP, Node: pod.Spec.NodeName, Cluster: cluster,
	})
	if err != nil {
		return nil, err
	}
	return &tappedProxy{
		node: identity.NodeID, before: before, stop: z.Stop, ended: z.Ended(), failure: z.Err,
		held: func(ctx context.Context) (map[wiretap.Key]string, error) {
			dump, err := z.Held(ctx)
			if err != nil {
				return nil, err
			}
			held := map[wiretap.Key]string{}
			for kind, names := range map[string][]string{ztunnelTypes[0]: dump.Addresses, ztunnelTypes[1]: dump.Authorizations} {
				for _, name := range names {
					held[wiretap.Key{Type: kind, Name: name}] = ""
				}
			}
			return held, nil
		},
	}, nil
}

// ztunnelMore compares the headers of the last streams, and the certificate requests
// since the last call. It does not compare their order: first requests follow the order
// of Addresses in a response, which istiod changes from one response to the next.
func (c *comparison) ztunnelMore(ctx context.Context, about string) error {
	requests, err := c.certificateRequests(ctx)
	if err != nil {
		return err
	}
	var headers [2]map[string]string
	for side, p := range c.proxies {
		streams := c.streams(side)
		headers[side] = streams[len(streams)-1].Headers
		p.certificates += len(requests[side])
	}
	names := maps.Clone(headers[realSide])
	maps.Copy(names, headers[simulated])
	for _, name := range slices.Sorted(maps.Keys(names)) {
		c.seen.compareText("header "+name+" of the stream", headers[realSide][name], headers[simulated][name])
	}
	if c.result.Certificates == nil {
		c.result.Certificates = &record.CertificatesCompared{}
	}
	c.seen.compareCertificates(about, requests, c.result.Certificates)
	return nil
}

// certificateRequests returns the certificate requests since the last call, once both
// sides have sent equally many and each was answered, or after certificateTime.
func (c *comparison) certificateRequests(ctx context.Context) (requests [2][]wiretap.CertificateRequest, err error) {
	late := time.NewTimer(certificateTime)
	defer late.Stop()
	for {
		changed := c.tap.Changed()
		for side, p := range c.proxies {
			pod := c.pods[side]
			requests[side] = c.tap.Certificates(pod.Namespace + "/" + pod.Name)[p.certificates:]
		}
		a, b := requests[realSide], requests[simulated]
		if len(a) == len(b) && !slices.ContainsFunc(slices.Concat(a, b), func(r wiretap.CertificateRequest) bool { return r.Ended.IsZero() }) {
			return requests, nil
		}
		select {
		case <-changed:
		case <-late.C:
			return requests, nil
		case <-ctx.Done():
			return requests, context.Cause(ctx)
		}
	}
}

// compareCertificates compares certificate requests, adds them to sum, and records
// differences.
func (s differencesSeen) compareCertificates(about string, requests [2][]wiretap.CertificateRequest, sum *record.CertificatesCompared) {
	var texts [2][]string
	for side := range requests {
		for _, r := range requests[side] {
			texts[side] = append(texts[side], r.Text())
		}
		slices.Sort(texts[side])
	}
	sum.Real += len(texts[realSide])
	sum.Simulated += len(texts[simulated])
	sum.RealAtOnce = max(sum.RealAtOnce, atOnce(requests[realSide]))
	sum.SimulatedAtOnce = max(sum.SimulatedAtOnce, atOnce(requests[simulated]))
	var alone [2][]string
	a, b := texts[realSide], texts[simulated]
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			alone[realSide], a = append(alone[realSide], a[0]), a[1:]
		case len(a) == 0 || b[0] < a[0]:
			alone[simulated], b = append(alone[simulated], b[0]), b[1:]
		default:
			sum.Common++
			a, b = a[1:], b[1:]
		}
	}
	if len(alone[realSide])+len(alone[simulated]) > 0 {
		s.add(record.Difference{
			About: about + " certificates", Real: strings.Join(alone[realSide], "; "), Simulated: strings.Join(alone[simulated], "; "),
		})
	}
}

// atOnce returns the largest number of requests that were in progress at the same time.
func atOnce(requests []wiretap.CertificateRequest) int {
	most := 0
	for _, r := range requests {
		n := 0
		for _, o := range requests { // those that were under way when it began
			if !o.Began.After(r.Began) && (o.Ended.IsZero() || o.Ended.After(r.Began)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
