package dilation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scaler.mesh/scaler/pkg/record"
)

// Choice is a factor that trials chose, and how long the longest of them took.
type Choice struct {
	Factor float64               `json:"factor"`
	Choice record.DilationChoice `json:"choice"`
	Times  Times                 `json:"times"`
}

// Store is a folder of choices, a file each.
type Store struct{ Dir string }

// DefaultStore is the store in a cache folder; "" is scaler's in the user's cache folder.
func DefaultStore(cache string) (Store, error) {
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return Store{}, fmt.Errorf("finding the user's cache folder: %w", err)
		}
		cache = filepath.Join(base, "scaler")
	}
	return Store{filepath.Join(cache, "dilation")}, nil
}

// file is that of the choice for what key describes: all that trials depend on, as JSON.
func (s Store) file(key any) (string, error) {
	text, err := json.Marshal(key)
	if err != nil {
		return "", fmt.Errorf("naming a choice: %w", err)
	}
	sum := sha256.Sum256(text)
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:8])+".json"), nil
}

// Load is the choice that was saved for a key; nil if there is none that can be read.
func (s Store) Load(key any) (*Choice, error) {
	file, err := s.file(key)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the factor of an earlier trial: %w", err)
	}
	var c Choice
	if json.Unmarshal(text, &c) != nil || !(c.Factor >= 1 && c.Factor <= Max) || c.Choice.Made == nil || len(c.Choice.Trials) == 0 {
		return nil, nil // it is chosen again
	}
	return &c, nil
}

// Save keeps a choice for a key, in place of an earlier one.
func (s Store) Save(key any, c Choice) error {
	const doing = "keeping the factor of a trial: %w"
	file, err := s.file(key)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf(doing, err)
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fmt.Errorf(doing, err)
	}
	// Whole from its first instant: another scaler may read it.
	temporary := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(temporary, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf(doing, errors.Join(err, os.Remove(temporary)))
	}
	if err := os.Rename(temporary, file); err != nil {
		return fmt.Errorf(doing, err)
	}
	return nil
}
