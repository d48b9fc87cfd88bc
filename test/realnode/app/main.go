// App is the program of the images that test/realnode/node makes: "pause" waits for a signal, as
// the container that holds a pod's namespaces does; "echo --listen ADDRESS --name NAME" answers HTTP requests with the
// pod's name, with the arguments of scaler's own program.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	switch args := os.Args[1:]; {
	case len(args) == 1 && args[0] == "pause":
		<-ctx.Done()
	case len(args) == 5 && args[0] == "echo" && args[1] == "--listen":
		name, err := os.Hostname()
		server := &http.Server{Addr: args[2], ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, name)
		})}
		if err == nil {
			context.AfterFunc(ctx, func() { server.Close() })
			err = server.ListenAndServe()
		}
		if ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "app:", err)
			os.Exit(1)
		}
	default:
		fmt.Fprintln(os.Stderr, "usage: app pause | app echo --listen ADDRESS --name NAME")
		os.Exit(2)
	}
}
