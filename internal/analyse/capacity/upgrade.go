package capacity

import (
	"fmt"
	"strings"
)

// Upgrade is the additional need during the largest upgrade among the runs: what the
// cluster must have free for one. It is measured, not forecast.
type Upgrade struct {
	From        string  `json:"from"` // versions
	To          string  `json:"to"`
	Pods        int     `json:"pods"` // of the mesh that was upgraded
	Cores       float64 `json:"cores"`
	MemoryBytes float64 `json:"memoryBytes"`

	text string // the same in words
}

// upgrade returns the upgrade of the largest run that had one; nil if none had.
func (s *sample) upgrade() *Upgrade {
	var u *Upgrade
	for _, r := range s.runs { // ascending by size
		text := r.UpgradeSentence()
		if text == "" {
			continue
		}
		room := r.Upgrade.Room
		u = &Upgrade{
			From: r.Upgrade.From.Version, To: r.Upgrade.To.Version, Pods: r.PodCount(),
			Cores: *room.Cores, MemoryBytes: *room.MemoryBytes, text: text,
		}
	}
	return u
}

// sentence states what an upgrade needs; "" for nil.
func (u *Upgrade) sentence(pods int) string {
	if u == nil {
		return ""
	}
	text := fmt.Sprintf("%s, measured with %d pods", strings.TrimSuffix(u.text, "."), u.Pods)
	if pods != u.Pods {
		text += fmt.Sprintf("; with %d it was not measured", pods)
	}
	return text + "."
}
