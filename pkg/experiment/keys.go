package experiment

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	// keyBits is what Istio's agent makes by default.
	keyBits = 2048
	// poolSize is enough for no two sidecars that start together to share a
	// key often; making one for each of 1600 would take minutes of the
	// processor time that is being measured.
	poolSize = 32
)

// keyPool hands out private keys made beforehand, in turn. The control plane's
// work does not depend on whether it has seen a key before.
type keyPool struct {
	keys []*rsa.PrivateKey
	next atomic.Uint64
}

func newKeyPool() (*keyPool, error) {
	pool := &keyPool{keys: make([]*rsa.PrivateKey, poolSize)}
	var group errgroup.Group
	group.SetLimit(2)
	for i := range pool.keys {
		group.Go(func() (err error) {
			pool.keys[i], err = rsa.GenerateKey(rand.Reader, keyBits)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("making private keys: %w", err)
	}
	return pool, nil
}

// Key is the next key of the pool.
func (p *keyPool) Key() (crypto.Signer, error) {
	return p.keys[p.next.Add(1)%poolSize], nil
}
