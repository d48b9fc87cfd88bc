package process

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

// The logs are in the formats of the programs that scaler starts; of long ones it is what stands
// around the error.
var _ = It("finds the errors in a log", func() {
	t := GinkgoTB()
	for name, tc := range map[string]struct{ log, want string }{
		"istiod with the injection template of another version": {
			"2026-11-22T19:51:37.036Z\tinfo\tUse self-signed certificate as the CA certificate\n" +
				"Error: failed to create discovery service: error initializing sidecar injector: template: inject:352: function \"otelResourceAttributes\" not defined. YAML:\n" +
				"policy: enabled\n" + strings.Repeat("    - name: ISTIO_META_ERROR\n      value: error\n", 3000) +
				"2026-11-22T19:51:37.040773Z\terror\tfailed to create discovery service: error initializing sidecar injector: template: inject:352: function \"otelResourceAttributes\" not defined. YAML:\n" +
				"policy: enabled\n" + strings.Repeat("    - name: ISTIO_META_ERROR\n      value: error\n", 3000),
			`Error: failed to create discovery service: error initializing sidecar injector: template: inject:352: function "otelResourceAttributes" not defined. YAML:`,
		},
		"istiod without a cluster": {
			"2026-11-22T19:52:04.621791Z\tinfo\tFLAG: --vklog=\"0\"\n" +
				"2026-11-22T19:52:04.641831Z\tinfo\tstarting HTTP service at [::]:8080\n" +
				"Error: failed to create discovery service: error initializing kube client: stat /nonexistent: no such file or directory\n" +
				"2026-11-22T19:52:04.646287Z\terror\tfailed to create discovery service: error initializing kube client: stat /nonexistent: no such file or directory\n",
			"Error: failed to create discovery service: error initializing kube client: stat /nonexistent: no such file or directory",
		},
		"etcd whose port is taken": {
			`{"level":"info","ts":"2026-11-22T19:52:02.434862Z","caller":"embed/etcd.go:428","msg":"closed etcd server","name":"default"}` + "\n" +
				`{"level":"fatal","ts":"2026-11-22T19:52:02.442704Z","caller":"etcdmain/etcd.go:183","msg":"discovery failed","error":"listen tcp 127.0.0.1:34567: bind: address already in use"}` + "\n",
			`{"level":"fatal","ts":"2026-11-22T19:52:02.442704Z","caller":"etcdmain/etcd.go:183","msg":"discovery failed","error":"listen tcp 127.0.0.1:34567: bind: address already in use"}`,
		},
		"kube-apiserver without a key": {
			"W1122 19:52:03.176943   29122 authentication.go:841] AnonymousAuth is not allowed with the AlwaysAllow authorizer\n" +
				"E1122 19:52:03.177481   29122 run.go:72] \"command failed\" err=\"--service-account-issuer should be specified\"\n",
			`E1122 19:52:03.177481   29122 run.go:72] "command failed" err="--service-account-issuer should be specified"`,
		},
		"KWOK without stages": {
			`{"time":"2026-11-22T19:52:03.860227304Z","level":"WARN","msg":"No pod stages found"}` + "\n" +
				`{"time":"2026-11-22T19:52:03.860242657Z","level":"ERROR","msg":"Execute exit","err":"no stages found"}` + "\n",
			`{"time":"2026-11-22T19:52:03.860242657Z","level":"ERROR","msg":"Execute exit","err":"no stages found"}`,
		},
		"Prometheus with a configuration that it cannot read": {
			"time=2026-11-22T19:52:10.100Z level=INFO source=main.go:640 msg=\"Starting Prometheus Server\"\n" +
				"time=2026-11-22T19:52:10.101Z level=ERROR source=main.go:520 msg=\"Error loading config\" err=\"parsing YAML file x: unknown field\"\n",
			"time=2026-11-22T19:52:10.101Z level=ERROR source=main.go:520 msg=\"Error loading config\" err=\"parsing YAML file x: unknown field\"",
		},
		"Envoy": {
			"[2026-11-22 19:52:10.100][4711][info][main] [source/server/server.cc:430] initializing\n" +
				"[2026-11-22 19:52:10.101][4711][critical][main] [source/server/server.cc:131] error initializing config: unable to parse JSON\n" +
				"[2026-11-22 19:52:10.102][4711][info][main] [source/server/server.cc:990] exiting\n",
			"[2026-11-22 19:52:10.101][4711][critical][main] [source/server/server.cc:131] error initializing config: unable to parse JSON",
		},
		"a panic": {
			"2026-11-22T19:52:04.6Z\terror\tsomething else\npanic: runtime error: invalid memory address or nil pointer dereference\n" +
				"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n\ngoroutine 1 [running]:\nmain.f(...)\n\t/src/main.go:10\nmain.main()\n\t/src/main.go:4 +0x1d\n" +
				strings.Repeat("\ngoroutine 2 [select]:\nmain.g()\n\t/src/main.go:20\n", 40),
			"panic: runtime error: invalid memory address or nil pointer dereference\n" +
				"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n\ngoroutine 1 [running]:\nmain.f(...)\n\t/src/main.go:10\nmain.main()\n\t/src/main.go:4 +0x1d",
		},
		"the same error again and again": {
			strings.Repeat("2026-11-22T19:52:04.6Z\terror\tconnection refused, attempt 7\n2026-11-22T19:52:05.6Z\terror\tconnection refused, attempt 8\n", 50) +
				"2026-11-22T19:52:06.6Z\tfatal\tgiving up\n2026-11-22T19:52:06.7Z\tinfo\tbye\n",
			"2026-11-22T19:52:04.6Z\terror\tconnection refused, attempt 7\n2026-11-22T19:52:06.6Z\tfatal\tgiving up",
		},
		"no error":          {"starting\nerror rates are low\nstopping\n", ""},
		"nothing":           {"", ""},
		"a very long error": {"Error: a" + strings.Repeat("x", 5000) + "z", "Error: a" + strings.Repeat("x", 292) + " ... " + strings.Repeat("x", 299) + "z"},
	} {
		if got := errorLines(tc.log); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tc.want)
		}
	}
})
