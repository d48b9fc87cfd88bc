package worker

import (
	"errors"
	"fmt"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// decoder delivers the events of batches, in the time of this process.
type decoder struct {
	clock    *clock
	observer proxy.Observer
	ids      *ids
	keys     []convergence.Key
	contents []*convergence.Content
}

// take delivers the events of a batch. It fails if the batch refers to a key or content that
// was never sent.
func (d *decoder) take(b *batch) error {
	d.learn(b)
	for i := range b.Events {
		if err := d.deliver(&b.Events[i]); err != nil {
			return err
		}
	}
	return nil
}

// learn adds the batch's keys and contents to the tables.
func (d *decoder) learn(b *batch) {
	if b.Forget {
		d.keys, d.contents = nil, nil
	}
	d.keys = append(d.keys, b.Keys...)
	for _, c := range b.Contents {
		d.contents = append(d.contents, &convergence.Content{Digest: c.Digest, Endpoints: c.Endpoints, Members: c.Members, Markers: c.Markers})
	}
}

func (d *decoder) deliver(e *event) error {
	id := d.ids.of(e.Proxy)
	switch {
	case e.Token != nil:
		d.observer.TokenFetched(id, proxy.TokenFetched{
			Asked: d.clock.here(e.Token.Asked), Received: d.clock.here(e.Token.Received), Waited: e.Token.Waited, Err: failure(e.Token.Err),
		})
	case e.Opened != nil:
		d.observer.StreamOpened(id, proxy.StreamOpened{
			Attempt: e.Opened.Attempt, Server: e.Opened.Server, Dialed: d.clock.here(e.Opened.Dialed),
			Connected: d.clock.here(e.Opened.Connected), Requested: d.clock.here(e.Opened.Requested),
		})
	case e.Updated != nil:
		update, err := d.update(e.Updated)
		if err != nil {
			return err
		}
		d.observer.Updated(id, update)
	case e.Ended != nil:
		d.observer.StreamEnded(id, proxy.StreamEnded{
			Attempt: e.Ended.Attempt, Dialed: d.clock.here(e.Ended.Dialed), Connected: d.clock.here(e.Ended.Connected),
			Ended: d.clock.here(e.Ended.Ended), Class: e.Ended.Class, Err: failure(e.Ended.Err), Responses: e.Ended.Responses, Backoff: e.Ended.Backoff,
		})
	case e.Certificate != nil:
		c := e.Certificate
		d.observer.Certified(id, proxy.Certificate{
			Identity: c.Identity, Attempt: c.Attempt, Key: c.Key, Sent: d.clock.here(c.Sent), Verified: d.clock.here(c.Verified),
			Expires: c.Expires, Backoff: c.Backoff, Err: failure(c.Err),
		})
	}
	return nil
}

func (d *decoder) update(u *updated) (proxy.Update, error) {
	update := proxy.Update{
		Type: u.Type, Bytes: u.Bytes, Wasted: u.Wasted, Complete: u.Complete, Rejected: failure(u.Rejected), Node: u.Node,
		Update: convergence.Update{ReceivedAt: d.clock.here(u.ReceivedAt), AckedAt: d.clock.here(u.AckedAt)},
	}
	for _, r := range u.Set {
		k, err := d.key(r.Key)
		if err != nil {
			return update, err
		}
		set := convergence.Resource{Key: k}
		if r.Content != 0 {
			if r.Content < 0 || r.Content > len(d.contents) {
				return update, fmt.Errorf("reading an event: content %d was never sent, of %d", r.Content, len(d.contents))
			}
			set.Content = d.contents[r.Content-1]
		}
		update.Set = append(update.Set, set)
	}
	for _, n := range u.Removed {
		k, err := d.key(n)
		if err != nil {
			return update, err
		}
		update.Removed = append(update.Removed, k)
	}
	return update, nil
}

// holdings decodes an answer.
func (d *decoder) holdings(a *holdingsAnswer) ([]Holding, error) {
	var all []Holding
	for _, h := range a.All {
		one := Holding{ID: d.ids.of(h.Proxy), Types: h.Types}
		for _, n := range h.Keys {
			k, err := d.key(n)
			if err != nil {
				return nil, err
			}
			one.Keys = append(one.Keys, k)
		}
		all = append(all, one)
	}
	return all, nil
}

// key looks up a key by its number.
func (d *decoder) key(n int) (convergence.Key, error) {
	if n < 1 || n > len(d.keys) {
		return convergence.Key{}, fmt.Errorf("reading an event: key %d was never sent, of %d", n, len(d.keys))
	}
	return d.keys[n-1], nil
}

// failure makes an error of its text; nil of "". Errors that it wrapped are lost.
func failure(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
