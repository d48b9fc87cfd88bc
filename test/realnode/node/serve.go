package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/forward"
)

// serve passes connections of the node on to the API server, and answers DNS queries of pods for
// services, until ctx ends.
func serve(ctx context.Context, apiServer, kubeconfig string) error {
	client, err := newClient(kubeconfig)
	if err != nil {
		return err
	}
	forwarder, err := forward.ListenOn(net.JoinHostPort(machineAddress, strconv.Itoa(apiPort)))
	if err != nil {
		return err
	}
	defer forwarder.Close()
	forwarder.To([]string{apiServer})
	queries, err := new(net.ListenConfig).ListenPacket(ctx, "udp", net.JoinHostPort(machineAddress, "53"))
	if err != nil {
		return fmt.Errorf("listening for DNS queries: %w", err)
	}
	context.AfterFunc(ctx, func() { queries.Close() })
	buffer := make([]byte, 4096)
	for {
		n, from, err := queries.ReadFrom(buffer)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		query := append([]byte(nil), buffer[:n]...)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if reply := answer(query, func(service, namespace string) string { return address(ctx, client, service, namespace) }); reply != nil {
				_, _ = queries.WriteTo(reply, from) // who asked asks again
			}
		}()
	}
}

// reach connects to the API server, and fails where it does not answer.
func reach(ctx context.Context, apiServer string) error {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // any answer is the API server's
	connection, err := dialer.DialContext(ctx, "tcp", apiServer)
	if err != nil {
		return err
	}
	return connection.Close()
}

// address returns the address of a service; "" if there is none.
func address(ctx context.Context, client kubernetes.Interface, service, namespace string) string {
	s, err := client.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
	if err != nil || s.Spec.ClusterIP == corev1.ClusterIPNone {
		return ""
	}
	return s.Spec.ClusterIP
}

// answer returns the reply to a DNS query; nil = none. Names are those of services,
// SERVICE.NAMESPACE.svc.cluster.local.
func answer(query []byte, address func(service, namespace string) string) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 || m.Response {
		return nil
	}
	q := m.Questions[0]
	reply := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true, RecursionDesired: m.RecursionDesired, RCode: dnsmessage.RCodeNameError},
		Questions: m.Questions,
	}
	if path, ours := strings.CutSuffix(strings.ToLower(q.Name.String()), ".svc.cluster.local."); ours {
		service, namespace, _ := strings.Cut(path, ".")
		if ip := net.ParseIP(address(service, namespace)).To4(); ip != nil {
			reply.RCode = dnsmessage.RCodeSuccess
			if q.Type == dnsmessage.TypeA {
				reply.Answers = []dnsmessage.Resource{{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 5}, Body: &dnsmessage.AResource{A: [4]byte(ip)},
				}}
			}
		}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}
