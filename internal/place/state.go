package place

import (
	"fmt"
	"os"
	"path/filepath"
)

// StateDir returns the folder that holds the embedded clusters of this user: SCALER_STATE_DIR, or
// scaler in XDG_STATE_HOME or in the home folder's .local/state. Its error states which variable to
// set.
func StateDir() (string, error) {
	if dir := os.Getenv("SCALER_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		if !filepath.IsAbs(dir) { // another folder for each command
			return "", fmt.Errorf("parsing XDG_STATE_HOME=%q: want an absolute path, or set SCALER_STATE_DIR", dir)
		}
		return filepath.Join(dir, "scaler"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the home folder: %w; set HOME or SCALER_STATE_DIR", err)
	}
	return filepath.Join(home, ".local", "state", "scaler"), nil
}
