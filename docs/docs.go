// Package docs embeds those of the project's documents that programs show.
package docs

import "embed"

// Reference has reference/figures.md, which states what each figure means, and reference/definitions, which explains
// the concepts that figures share, by topic.
//
//go:embed reference/figures.md reference/definitions/*.md
var Reference embed.FS
