package wiretap

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// CertificateRequest is a recorded certificate request.
type CertificateRequest struct {
	Began, Ended time.Time         // Ended is zero while the request is under way
	Headers      map[string]string // as headersOf has them
	Pod          string            // namespace/name of the pod whose token it carries; "" = it carries no pod's
	Validity     time.Duration     // asked for
	Metadata     map[string]any    // of the request; nil = it has none
	Signed       string            // what the signing request says: key, signature, names
	Code         codes.Code        // how it ended, once it has
}

// headersOf returns the headers of a call as text, except those that name the gRPC
// library or the address. A token is reduced to its scheme.
func headersOf(ctx context.Context) map[string]string {
	all, _ := metadata.FromIncomingContext(ctx)
	headers := map[string]string{}
	for name, values := range all {
		switch name {
		case ":authority", "user-agent", "content-type", "grpc-accept-encoding", "accept-encoding":
		case "authorization":
			scheme, _, _ := strings.Cut(values[0], " ")
			headers[name] = scheme
		default:
			headers[name] = strings.Join(values, ", ")
		}
	}
	return headers
}

// podOf returns the pod, as namespace/name, that a call's token is bound to; "" if there
// is none. The token is not verified.
func podOf(ctx context.Context) string {
	for _, value := range metadata.ValueFromIncomingContext(ctx, "authorization") {
		parts := strings.Split(value, ".")
		if len(parts) != 3 {
			continue
		}
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			continue
		}
		var claims struct {
			Kubernetes struct {
				Namespace string `json:"namespace"`
				Pod       struct {
					Name string `json:"name"`
				} `json:"pod"`
			} `json:"kubernetes.io"`
		}
		if json.Unmarshal(text, &claims) == nil && claims.Kubernetes.Pod.Name != "" {
			return claims.Kubernetes.Namespace + "/" + claims.Kubernetes.Pod.Name
		}
	}
	return ""
}

// Certificates returns copies of all certificate requests with tokens of this pod, given
// as namespace/name, in the order of their arrival.
func (w *Wiretap) Certificates(pod string) []CertificateRequest {
	w.mu.Lock()
	defer w.mu.Unlock()
	var requests []CertificateRequest
	for _, r := range w.certificates {
		if r.Pod == pod {
			requests = append(requests, *r)
		}
	}
	return requests
}

// begin starts to record a certificate request.
func (w *Wiretap) begin(ctx context.Context) *CertificateRequest {
	r := &CertificateRequest{Began: time.Now(), Headers: headersOf(ctx), Pod: podOf(ctx)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.certificates = append(w.certificates, r)
	w.notify()
	return r
}

// describe notes what a request asks for.
func (w *Wiretap) describe(r *CertificateRequest, f frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.read(f)
	w.notify()
}

// end notes how a request ended.
func (w *Wiretap) end(r *CertificateRequest, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Ended, r.Code = time.Now(), status.Code(err)
	w.notify()
}

// read reads an istio.v1.auth.IstioCertificateRequest, and records if the bytes are none.
func (r *CertificateRequest) read(b []byte) {
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			r.Signed = "no message"
			return
		}
		value := b[n:]
		if n = protowire.ConsumeFieldValue(number, wire, value); n < 0 {
			r.Signed = "no message"
			return
		}
		switch {
		case number == 1 && wire == protowire.BytesType:
			text, _ := protowire.ConsumeBytes(value)
			r.Signed = signedText(text)
		case number == 3 && wire == protowire.VarintType:
			seconds, _ := protowire.ConsumeVarint(value)
			r.Validity = time.Duration(seconds) * time.Second
		case number == 4 && wire == protowire.BytesType:
			text, _ := protowire.ConsumeBytes(value)
			var s structpb.Struct
			if proto.Unmarshal(text, &s) == nil {
				r.Metadata = s.AsMap()
			}
		}
		b = value[n:]
	}
}

// signedText describes the content of a PEM-encoded certificate signing request: key,
// signature algorithm and names. For anything else it returns the reason why it cannot.
func signedText(text []byte) string {
	block, _ := pem.Decode(text)
	if block == nil {
		return "no PEM"
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err.Error()
	}
	key := request.PublicKeyAlgorithm.String()
	switch k := request.PublicKey.(type) {
	case *ecdsa.PublicKey:
		key += " " + k.Curve.Params().Name
	case *rsa.PublicKey:
		key += fmt.Sprintf(" %d", k.N.BitLen())
	}
	words := []string{key, request.SignatureAlgorithm.String()}
	for _, uri := range request.URIs {
		words = append(words, uri.String())
	}
	return strings.Join(append(words, request.DNSNames...), " ")
}

// Text describes the request, without anything that differs between two proxies that
// behave the same.
func (r *CertificateRequest) Text() string {
	words := []string{r.Signed, "for " + r.Validity.String()}
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		words = append(words, fmt.Sprintf("%s=%v", name, r.Metadata[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		words = append(words, name+": "+r.Headers[name])
	}
	if !r.Ended.IsZero() {
		words = append(words, "answered "+r.Code.String())
	}
	return strings.Join(words, ", ")
}
