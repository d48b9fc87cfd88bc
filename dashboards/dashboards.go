// Package dashboards contains scaler's Grafana dashboards, and the files that provision a
// Grafana with them and with the Prometheus of a run.
//
// The dashboards are generated (dashboards/generate, hack/update-dashboards.sh) and
// committed, so the generator is not needed to use them. Package grafana loads them into
// a running Grafana.
package dashboards

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

//go:embed json provisioning
var files embed.FS

const (
	jsonDir         = "json"
	provisioningDir = "provisioning"
)

// names are the dashboards' uids, in reading order.
var names = []string{"scaler-control-plane", "scaler-xds-certificates", "scaler-data-plane", "scaler-instrument"}

// FolderUID and FolderTitle identify the folder that contains them in Grafana.
const (
	FolderUID   = "scaler"
	FolderTitle = "scaler"
)

// Dashboard is one of them.
type Dashboard struct {
	// UID is the same in every version of scaler, and in every Grafana.
	UID string
	// Title is the title that a reader sees.
	Title string
	// JSON is the dashboard in the format of Grafana's files and HTTP API.
	JSON json.RawMessage
}

// All returns the dashboards, in reading order.
func All() ([]Dashboard, error) {
	var all []Dashboard
	for _, name := range names {
		data, err := files.ReadFile(path.Join(jsonDir, name+".json"))
		if err != nil {
			return nil, fmt.Errorf("reading dashboard %s: %w", name, err)
		}
		d := Dashboard{JSON: data}
		if err := json.Unmarshal(data, &d); err != nil {
			return nil, fmt.Errorf("reading dashboard %s: %w", name, err)
		}
		all = append(all, d)
	}
	return all, nil
}

// Exported states where Export has put what.
type Exported struct {
	Dashboards   string // the folder of the JSON files
	Provisioning string // what Grafana's paths.provisioning is to be
}

// Source describes the Prometheus that the dashboards query.
type Source struct {
	URL string
	// ScrapeInterval is the time between two scrapes of the control plane in its series. Grafana takes rates over four of
	// them at least. If it is stated too short, there are no rates.
	ScrapeInterval time.Duration
}

// Export writes the dashboards into the folder dashboards below dir, and into the folder
// provisioning the files that make a Grafana load them and query source.
// Missing folders are created, existing files overwritten.
func Export(dir string, source Source) (Exported, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Exported{}, fmt.Errorf("exporting dashboards: %w", err)
	}
	to := Exported{Dashboards: filepath.Join(dir, "dashboards"), Provisioning: filepath.Join(dir, provisioningDir)}
	content := map[string][]byte{}
	all, err := All()
	if err != nil {
		return Exported{}, err
	}
	for _, d := range all {
		content[filepath.Join(to.Dashboards, d.UID+".json")] = d.JSON
	}
	values := map[string]string{
		"SCALER_PROMETHEUS_URL":  source.URL,
		"SCALER_SCRAPE_INTERVAL": fmt.Sprintf("%ds", int(math.Ceil(source.ScrapeInterval.Seconds()))), // Grafana knows no fractions
		"SCALER_DASHBOARDS":      to.Dashboards,
	}
	for _, kind := range []string{"datasources", "dashboards"} {
		template, err := files.ReadFile(path.Join(provisioningDir, kind, "scaler.yaml"))
		if err != nil {
			return Exported{}, fmt.Errorf("exporting dashboards: %w", err)
		}
		content[filepath.Join(to.Provisioning, kind, "scaler.yaml")] = []byte(fill(string(template), values))
	}
	for name, data := range content {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return Exported{}, fmt.Errorf("exporting dashboards: %w", err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return Exported{}, fmt.Errorf("exporting dashboards: %w", err)
		}
	}
	return to, nil
}

// fill replaces each ${NAME} by a value, quoted in a way that is valid in YAML and JSON.
// Dollar signs are doubled, because Grafana would expand a single one as a variable.
func fill(template string, values map[string]string) string {
	return os.Expand(template, func(name string) string {
		value, ok := values[name]
		if !ok {
			return "${" + name + "}"
		}
		quoted, err := json.Marshal(strings.ReplaceAll(value, "$", "$$"))
		if err != nil { // a string can always be marshalled
			return value
		}
		return string(quoted)
	})
}
