package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPersist(t *testing.T) {
	gone := fmt.Errorf("creating x: %w", &url.Error{Op: "Post", URL: "https://127.0.0.1", Err: syscall.ECONNREFUSED})
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("no"))
	for _, test := range []struct {
		name  string
		fails []error // of the first tries
		want  error
		takes time.Duration
	}{
		{"at once", nil, nil, 0},
		{"after a while", []error{gone, io.EOF, apierrors.NewServiceUnavailable("starting"), apierrors.NewTooManyRequests("later", 1)}, nil, 1500 * time.Millisecond},
		{"never", []error{gone, refused}, refused, 100 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := Persist(t.Context(), func(_ context.Context, try int) error {
					if try < len(test.fails) {
						return test.fails[try]
					}
					return nil
				})
				if !errors.Is(err, test.want) || time.Since(began) != test.takes {
					t.Errorf("got %v after %s, want %v after %s", err, time.Since(began), test.want, test.takes)
				}
			})
		})
	}
	t.Run("until the context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			began := time.Now()
			err := Persist(ctx, func(context.Context, int) error { return gone })
			if !errors.Is(err, syscall.ECONNREFUSED) || time.Since(began) != time.Minute {
				t.Errorf("got %v after %s", err, time.Since(began))
			}
		})
	})
}
