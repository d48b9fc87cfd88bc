package xdsprobe

import (
	"context"
	"fmt"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/proxy"
)

// tokenLife is the share of a token's life after which a new one is fetched, as
// a kubelet does.
const tokenLife = 0.8

// tokens holds the token that a sidecar's stream and certificate requests share.
type tokens struct {
	source  proxy.TokenSource
	fetched func(proxy.TokenFetched)

	mu      sync.Mutex // held while fetching: the other one waits for the same token
	token   proxy.Token
	renewAt time.Time // zero means never
	valid   bool
}

// get returns a token, a new one if the last is due to be renewed. If no new one can be
// obtained, it returns the last one until that has expired.
func (t *tokens) get(ctx context.Context) (string, error) {
	if t.source == nil {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	asked := time.Now()
	if t.valid && (t.renewAt.IsZero() || asked.Before(t.renewAt)) {
		return t.token.Value, nil
	}
	token, err := t.source.Token(ctx)
	now := time.Now()
	if ctx.Err() == nil {
		t.fetched(proxy.TokenFetched{Asked: asked, Received: now, Waited: token.Waited, Err: err})
	}
	if err != nil {
		if t.valid && now.Before(t.token.Expires) {
			return t.token.Value, nil
		}
		return "", fmt.Errorf("fetching a token: %w", err)
	}
	t.token, t.valid, t.renewAt = token, true, time.Time{}
	if !token.Expires.IsZero() {
		t.renewAt = now.Add(time.Duration(tokenLife * float64(token.Expires.Sub(now))))
	}
	return token.Value, nil
}
