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
	"scaler.mesh/scaler/pkg/scenario"
)

// Choice is a factor that trials chose, and how long the longest of them took.
type Choice struct {
	Factor float64               `json:"factor"`
	Choice record.DilationChoice `json:"choice"`
	Times  Times                 `json:"times"`
}

// Store is a folder of choices, a file each.
type Store struct {
	Dir string
	Say func(string) // takes what goes wrong with the folder, without which there still is a choice; nil = nobody does
}

// Choose returns the choice that is kept for a key, if it may be used again. Otherwise it
// runs the trials and returns their choice, which is kept for the key if they converged.
// The error is that of the trials.
func (s Store) Choose(key any, again bool, trials func() (c *Choice, converged bool, err error)) (*Choice, error) {
	if again {
		switch kept, err := s.Load(key); {
		case err != nil:
			s.say("the factor of --dilate is chosen again", err)
		case kept != nil:
			return kept, nil
		}
	}
	c, converged, err := trials()
	if err != nil || !converged {
		return c, err
	}
	if err := s.Save(key, *c); err != nil {
		s.say("the factor of --dilate is not kept for later rollouts", err)
	}
	return c, nil
}

func (s Store) say(text string, err error) {
	if s.Say != nil {
		s.Say(fmt.Sprintf("%s: %v", text, err))
	}
}

// file returns the path of the choice for a key, which describes everything that trials
// depend on, as JSON.
func (s Store) file(key any) (string, error) {
	text, err := json.Marshal(key)
	if err != nil {
		return "", fmt.Errorf("naming a choice: %w", err)
	}
	sum := sha256.Sum256(text)
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:8])+".json"), nil
}

// Load returns the choice that was saved for a key; nil if there is none that can be
// read.
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
	if json.Unmarshal(text, &c) != nil || !(c.Factor >= 1 && c.Factor <= scenario.MaxDilation) || c.Choice.Made == nil || len(c.Choice.Trials) == 0 {
		return nil, nil // it is chosen again
	}
	return &c, nil
}

// Save keeps a choice for a key, replacing an earlier one.
func (s Store) Save(key any, c Choice) error {
	const doing = "keeping the factor of a trial: %w"
	file, err := s.file(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fmt.Errorf(doing, err)
	}
	if err := record.SaveResult(file, c); err != nil {
		return fmt.Errorf(doing, err)
	}
	return nil
}
