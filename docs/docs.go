// Package docs embeds those of the project's documents that programs show.
package docs

import _ "embed"

// Figures is reference/figures.md, which states what each figure means.
//
//go:embed reference/figures.md
var Figures string

// Definitions is reference/definitions.md, which explains the concepts that figures share.
//
//go:embed reference/definitions.md
var Definitions string
