// Package docs embeds those of the project's documents that programs show.
package docs

import _ "embed"

// Definitions is reference/definitions.md, which states what each figure means.
//
//go:embed reference/definitions.md
var Definitions string
