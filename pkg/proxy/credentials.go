package proxy

import (
	"context"
	"time"
)

// Token is a bearer token of one workload.
type Token struct {
	Value   string
	Expires time.Time     // zero means never
	Waited  time.Duration // client-side rate limiting before the token was requested
}

// TokenSource provides tokens. It is called again for a stream or a certificate when 80 %
// of the last token's life has passed, as a kubelet renews the file that an agent reads.
type TokenSource interface {
	Token(ctx context.Context) (Token, error)
}

// Issued is the answer to a certificate signing request.
type Issued struct {
	Chain    [][]byte  // PEM, leaf first
	Sent     time.Time // the request was handed to a connection that was up
	Received time.Time // the whole answer was there
}

// Issuer sends a certificate signing request once. Retries, which depend on the gRPC
// status of the error if it has one, are made by the proxy. With an error, Issued.Sent is
// zero if the request was not sent.
type Issuer interface {
	Issue(ctx context.Context, token string, csrPEM []byte) (Issued, error)
}
