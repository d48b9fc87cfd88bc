package speed

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Work is the version of the work. Passes of work 1 were the same, one after another without a pause.
const Work = "2"

// Sizes of a pass. Together with what the functions below do they are the work.
const (
	messages   = 12   // that are encoded, hashed and decoded
	fields     = 120  // of each message, as endpoints of a cluster
	keys       = 4000 // of the map that is made and read
	replaced   = 1000 // of the objects that are held, which is garbage for the collector
	held       = 6000
	handshakes = 2
)

// work is a fixed piece of work. What it holds is the live heap that the collector marks.
type work struct {
	message  *descriptorpb.DescriptorProto
	names    []string
	live     []*node
	next     int
	server   *tls.Config
	client   *tls.Config
	checksum byte
}

// node is an object with pointers, as those of a control plane's indexes.
type node struct {
	name   string
	labels map[string]string
	other  *node
	data   []byte
}

func newWork() (*work, error) {
	w := &work{message: &descriptorpb.DescriptorProto{Name: new("outbound|80||service.namespace.svc.cluster.local")}, live: make([]*node, held)}
	for i := range fields {
		w.message.Field = append(w.message.Field, &descriptorpb.FieldDescriptorProto{
			Name: new(fmt.Sprintf("10.%d.%d.%d", i%7, i%11, i)), Number: new(int32(i + 1)),
			TypeName: new("type.googleapis.com/endpoint"), JsonName: new("locality/region/zone"),
			Options: &descriptorpb.FieldOptions{Deprecated: new(i%2 == 0)},
		})
	}
	for i := range keys {
		w.names = append(w.names, fmt.Sprintf("workload-%d.namespace-%d", i, i%40))
	}
	for range held {
		w.replace()
	}
	return w, w.certify()
}

// certify makes the certificates of both ends of the handshakes.
func (w *work) certify() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "speed"}, DNSNames: []string{"speed"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	own := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}}
	curves := []tls.CurveID{tls.X25519}
	w.server = &tls.Config{Certificates: own, ClientCAs: pool, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13, CurvePreferences: curves, SessionTicketsDisabled: true}
	w.client = &tls.Config{Certificates: own, RootCAs: pool, ServerName: "speed", MinVersion: tls.VersionTLS13, CurvePreferences: curves}
	return nil
}

// pass does the work once.
func (w *work) pass() error {
	if err := w.exchange(); err != nil {
		return err
	}
	if err := w.index(); err != nil {
		return err
	}
	w.replaceSome()
	return w.connect()
}

// exchange encodes, hashes and decodes messages.
func (w *work) exchange() error {
	for range messages {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(w.message)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		w.checksum ^= sum[0]
		if err := proto.Unmarshal(text, new(descriptorpb.DescriptorProto)); err != nil {
			return err
		}
	}
	return nil
}

// index makes a map and reads it.
func (w *work) index() error {
	index := map[string]int{}
	for i, name := range w.names {
		index[name] = i
	}
	for i, name := range w.names {
		if index[name] != i {
			return errors.New("a map has lost a key")
		}
	}
	return nil
}

// replaceSome replaces objects of the live heap.
func (w *work) replaceSome() {
	for range replaced {
		w.replace()
	}
}

// connect does handshakes.
func (w *work) connect() error {
	for range handshakes {
		if err := w.handshake(); err != nil {
			return err
		}
	}
	return nil
}

// replace puts a new object in the place of the oldest that is held.
func (w *work) replace() {
	i := w.next % held
	w.next++
	w.live[i] = &node{
		name: w.names[i%keys], labels: map[string]string{"app": w.names[i%keys], "version": "v1"},
		other: w.live[(i*7919)%held], data: make([]byte, 256),
	}
	w.live[i].other.cut()
}

// cut ends a chain of objects, so that those that were replaced are garbage.
func (n *node) cut() {
	if n != nil {
		n.other = nil
	}
}

// handshake connects both ends over a pipe in memory, with certificates on both.
func (w *work) handshake() error {
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- tls.Server(far, w.server).Handshake() }()
	err := tls.Client(near, w.client).Handshake()
	if err != nil {
		_ = near.Close() // so that the other end does not wait
	}
	return errors.Join(err, <-ended, near.Close(), far.Close())
}
