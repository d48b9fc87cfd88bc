package process

import (
	"sync"

	. "github.com/onsi/ginkgo/v2"
	"golang.org/x/sys/unix"
)

// Go keeps the main thread: a namespace that it had entered would be shown as this program's, for good.
var _ = It("starts children from a thread of their own", func() {
	t := GinkgoTB()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 200 {
				err := onThread(func() error {
					if unix.Gettid() == unix.Getpid() {
						t.Error("it is the main thread")
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
})
