package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"scaler.mesh/scaler/dashboards"
	"scaler.mesh/scaler/internal/grafana"
	"scaler.mesh/scaler/internal/measure"
)

func newDashboardsCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dashboards",
		Short: "Export or push the Grafana dashboards, or serve them with the data of runs",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(endsAtOnce(newDashboardsExportCommand(s)), endsAtOnce(newDashboardsPushCommand(s)), newDashboardsServeCommand(s))
	return cmd
}

func newDashboardsExportCommand(s streams) *cobra.Command {
	var (
		prometheusURL string
		interval      time.Duration
	)
	cmd := &cobra.Command{
		Use:   "export DIR",
		Short: "Write the dashboards and provisioning files for Grafana",
		Long: `Export writes the dashboards into DIR/dashboards, and files for Grafana's
provisioning of dashboards and data source into DIR/provisioning. Set Grafana's
paths.provisioning to that folder. Files of an earlier export are overwritten.`,
		Example: `  scaler dashboards export grafana --prometheus-url http://prometheus:9090
  GF_PATHS_PROVISIONING=$PWD/grafana/provisioning grafana server --homepath /usr/share/grafana`,
		Args:              exactlyOne("DIR", "scaler dashboards export grafana"),
		ValidArgsFunction: completeFolders,
		RunE: func(_ *cobra.Command, args []string) error {
			address, err := grafana.ParseURL(prometheusURL)
			if err != nil {
				return usagef("--prometheus-url: got %q, want the address of a Prometheus, as in http://localhost:9090", grafana.WithoutCredentials(prometheusURL))
			}
			if address.User != nil {
				return usagef("--prometheus-url: got %q, want no user and password, which anybody could read in the file: set them in Grafana", grafana.WithoutCredentials(prometheusURL))
			}
			if interval < time.Second {
				return usagef("--scrape-interval: got %s, want 1s or longer", interval)
			}
			exported, err := dashboards.Export(args[0], dashboards.Source{URL: prometheusURL, ScrapeInterval: interval})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "dashboards    %s\nprovisioning  %s\n", exported.Dashboards, exported.Provisioning)
			return err
		},
	}
	cmd.Flags().StringVar(&prometheusURL, "prometheus-url", "http://localhost:9090", "`URL` of the Prometheus that Grafana queries")
	cmd.Flags().DurationVar(&interval, "scrape-interval", measure.SampleInterval, "time between two scrapes in the runs: K seconds if time was slowed down K times")
	return cmd
}

func newDashboardsPushCommand(s streams) *cobra.Command {
	var (
		target grafana.Target
		output string
	)
	cmd := &cobra.Command{
		Use:   "push",
		Short: "Write the dashboards into a running Grafana",
		Long: `Push writes the dashboards into the folder "scaler" of a running Grafana, through
its HTTP API. The folder is created if it is missing. Dashboards of an earlier
push are overwritten. The token must be that of a service account with the role
Editor.

The Prometheus is selected on the dashboards.`,
		Example: `  GRAFANA_TOKEN=... scaler dashboards push --url https://grafana.example`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := grafana.ParseURL(target.URL); err != nil {
				return usagef("--url: %w", err)
			}
			if target.Token == "" {
				target.Token = os.Getenv("GRAFANA_TOKEN")
			}
			all, err := dashboards.All()
			if err != nil {
				return err
			}
			pushed, err := grafana.Push(cmd.Context(), target, all)
			if err != nil {
				return fmt.Errorf("pushing dashboards: %w", err)
			}
			return printList(s.out, output, "DashboardList", pushed, []string{"UID", "TITLE", "URL"}, func(p grafana.Pushed) []string {
				return []string{p.UID, p.Title, p.URL}
			})
		},
	}
	cmd.Flags().StringVar(&target.URL, "url", "", "`URL` of the Grafana; required")
	cmd.Flags().StringVar(&target.Token, "token", "", "`token` of a service account (default $GRAFANA_TOKEN, which other users of this machine cannot see)")
	addListOutput(cmd, &output)
	return cmd
}

// exactlyOne returns the check of a command that takes one argument, with an example
// of its use.
func exactlyOne(name, example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return usagef("%d arguments: want one %s, as in '%s'", len(args), name, example)
		}
		return nil
	}
}
