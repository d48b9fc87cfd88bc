// Command generate prints what an Envoy, the program that its one argument names, sends
// about itself to a control plane, without what belongs to its workload.
// hack/update-proxy.sh calls it. The program scaler contains the file, but not this
// generator.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"k8s.io/apimachinery/pkg/util/wait"

	"scaler.mesh/scaler/internal/httpget"
)

// answerTimeout is the time limit of Envoy's answer.
const answerTimeout = 30 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("arguments %q: want one, the path of an Envoy", args)
	}
	node, err := nodeOf(ctx, args[0])
	if err != nil {
		return fmt.Errorf("asking %s: %w", args[0], err)
	}
	text, err := format(node)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// nodeOf starts an Envoy that is nobody's proxy, and asks its admin interface for
// its node: what it would send in the first request of a stream.
func nodeOf(ctx context.Context, envoy string) (_ *corev3.Node, err error) {
	dir, err := os.MkdirTemp("", "envoy-node-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The locality is of the bootstrap that Istio's agent writes.
	const bootstrap = `{"node": {"locality": {}}, "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}}}}`
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var log bytes.Buffer
	address := filepath.Join(dir, "address")
	cmd := exec.CommandContext(ctx, envoy, "--config-yaml", bootstrap, "--admin-address-path", address, "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "error")
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // in the end it is killed
		end(fmt.Errorf("it ended: %s", cmd.ProcessState))
		close(ended)
	}()
	defer func() { end(nil); <-ended }()

	var info struct{ Node json.RawMessage }
	var last error
	if err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		last = get(ctx, address, &info)
		return last == nil, nil
	}); err != nil {
		cause := context.Cause(ctx)
		end(nil)
		<-ended // then its log is whole
		return nil, fmt.Errorf("%w (%w)\n%s", cause, last, log.Bytes())
	}
	var node corev3.Node
	if err := protojson.Unmarshal(info.Node, &node); err != nil {
		return nil, fmt.Errorf("reading its node: %w", err)
	}
	return &node, nil
}

// get asks the server whose address is in a file.
func get(ctx context.Context, addressFile string, into any) error {
	address, err := os.ReadFile(addressFile)
	if err != nil {
		return err
	}
	answer, err := httpget.Get(ctx, nil, "http://"+string(bytes.TrimSpace(address))+"/server_info")
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// format writes a node as JSON with a line for each extension.
func format(node *corev3.Node) ([]byte, error) {
	extensions := node.Extensions
	node.Extensions = nil
	head, err := protojson.Marshal(node)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, head, "", " "); err != nil {
		return nil, err
	}
	out.Truncate(bytes.LastIndexByte(out.Bytes(), '\n'))
	out.WriteString(",\n \"extensions\": [")
	for i, extension := range extensions {
		text, err := protojson.Marshal(extension)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n  ")
		if err := json.Compact(&out, text); err != nil { // protojson's own blanks vary
			return nil, err
		}
	}
	out.WriteString("\n ]\n}\n")
	return out.Bytes(), nil
}
