package xdsprobe

import "time"

// secretTimes records when secrets were requested: separately for each name, because
// further ones may be subscribed to while the first are not answered yet.
type secretTimes struct {
	requested map[string]time.Time // not answered yet, on the current stream or an earlier one
	answered  map[string]time.Time // of the last response, those that it answered
}

// request records that secrets are requested now. A repeated request on a new stream
// replaces the time, because the answer will be that stream's.
func (t *secretTimes) request(names []string) {
	now := time.Now()
	for _, name := range names {
		if t.requested == nil {
			t.requested = map[string]time.Time{}
		}
		t.requested[name] = now
	}
}

// forget records that secrets are not subscribed to any more.
func (t *secretTimes) forget(names []string) {
	for _, name := range names {
		delete(t.requested, name)
	}
}

// answer takes the resources of a response.
func (t *secretTimes) answer(resources []*Resource) {
	t.answered = nil
	for _, r := range resources {
		if at, ok := t.requested[r.Name]; ok {
			if t.answered == nil {
				t.answered = map[string]time.Time{}
			}
			t.answered[r.Name] = at
			delete(t.requested, r.Name)
		}
	}
}
