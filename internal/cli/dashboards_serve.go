package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/internal/dashboardserver"
	"scaler.mesh/scaler/internal/grafana"
	"scaler.mesh/scaler/pkg/record"
)

func newDashboardsServeCommand(s streams) *cobra.Command {
	var spec dashboardserver.Spec
	cmd := &cobra.Command{
		Use:   "serve RUN...",
		Short: "Show runs in a Prometheus, and in a Grafana if one is found",
		Long: `Serve starts a Prometheus on the time series of runs and, if a grafana program or
Docker is found, a Grafana with the dashboards. Without a Grafana, it prints how to
configure one by hand. Each RUN is the folder of a run, or a folder that contains
runs at any depth. All of them are shown together, each under its name and mode.

A copy of the runs is served; the runs do not change. By default both programs
listen on this machine only. They need no password and end with this command
(Ctrl-C), which leaves nothing behind. Serving has no other end, so the exit code is
0 then.`,
		Example:           `  scaler dashboards serve scaler-runs/20261121-095442-598`,
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("want at least one RUN, as in 'scaler dashboards serve results'")
			}
			if spec.NoGrafana {
				if err := refuseFlags(cmd.Flags(), "none with --no-grafana", "grafana", "grafana-home", "grafana-image", "grafana-address"); err != nil {
					return err
				}
			}
			spec.GrafanaWanted = cmd.Flags().Changed("grafana") || cmd.Flags().Changed("grafana-image")
			var err error
			if spec.Runs, err = record.Read(args...); err != nil {
				return badFolder(err)
			}
			if err := spec.Validate(); err != nil {
				return usagef("%w", err)
			}
			if spec.State, err = stateDir(); err != nil {
				return err
			}
			return dashboardserver.Serve(cmd.Context(), spec, progress(s), func(what dashboardserver.Serving) error {
				if err := printServing(s.out, spec.Runs, what); err != nil {
					return err
				}
				fmt.Fprintln(s.err, "ctrl-C ends it")
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&spec.PrometheusAddress, "prometheus-address", "", "`HOST:PORT` of Prometheus (default a free port of 127.0.0.1)")
	f.StringVar(&spec.GrafanaAddress, "grafana-address", "", "`HOST:PORT` of Grafana (default a free port of 127.0.0.1)")
	f.StringVar(&spec.Grafana.Program, "grafana", "", "`path` of the program grafana or grafana-server (default: in PATH, else Docker)")
	f.StringVar(&spec.Grafana.Home, "grafana-home", "", "`folder` with its conf and public (default: above the program, or where packages put it)")
	f.StringVar(&spec.Grafana.Image, "grafana-image", grafana.Image, "`image` that Docker is to run")
	f.BoolVar(&spec.NoGrafana, "no-grafana", false, "start only Prometheus")
	addComponentFlags(f, &spec.Programs)
	return cmd
}

// printServing states what is to be seen, and without a Grafana what to point at
// what.
func printServing(out io.Writer, runs []record.Run, what dashboardserver.Serving) error {
	var names []string
	for _, run := range runs {
		names = append(names, run.Name)
	}
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "runs\t%s\n", strings.Join(names, ", "))
	fmt.Fprintf(tw, "time\t%s to %s\n", what.From.Format(time.RFC3339), what.To.Format(time.RFC3339))
	fmt.Fprintf(tw, "prometheus\t%s\n", what.Prometheus)
	if what.Grafana != "" {
		fmt.Fprintf(tw, "grafana\t%s\n", what.Grafana)
		for _, d := range what.Dashboards {
			fmt.Fprintf(tw, "\t%s\n", d.URL)
		}
		return tw.Flush()
	}
	fmt.Fprintf(tw, "grafana\tnone: %s\n", what.NoGrafana)
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, `
To see the dashboards in a Grafana of yours:
  1. add a data source: type Prometheus, URL %[1]s, scrape interval 1s
  2. scaler dashboards push --url http://GRAFANA:3000 --token TOKEN
  3. open http://GRAFANA:3000/d/%[2]s?from=%[3]d&to=%[4]d and choose that data source
`, what.Prometheus, what.Dashboards[0].UID, what.From.UnixMilli(), what.To.UnixMilli())
	return err
}
