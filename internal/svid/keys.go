package svid

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

const (
	// KeyBits is the length of the keys that Istio's agent makes by default.
	KeyBits = 2048
	// poolSize is small because making a key takes a tenth of a second of processor time at the start of
	// every run, and minutes for 1600 sidecars.
	poolSize = 4
)

// KeyPool hands out private keys made beforehand, in turn. The control plane's
// work does not depend on whether it has seen a key before.
type KeyPool struct {
	keys []*rsa.PrivateKey
	next atomic.Uint64
}

// NewKeyPool returns a pool of the keys that this program makes once, whatever
// number of runs it does.
func NewKeyPool() (*KeyPool, error) {
	keys, err := privateKeys()
	return &KeyPool{keys: keys}, err
}

var privateKeys = sync.OnceValues(func() ([]*rsa.PrivateKey, error) {
	keys := make([]*rsa.PrivateKey, poolSize)
	var group errgroup.Group
	group.SetLimit(2)
	for i := range keys {
		group.Go(func() (err error) {
			keys[i], err = rsa.GenerateKey(rand.Reader, KeyBits)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("making private keys: %w", err)
	}
	return keys, nil
})

// Key returns the next key of the pool.
func (p *KeyPool) Key() (crypto.Signer, error) {
	return p.keys[p.next.Add(1)%poolSize], nil
}
