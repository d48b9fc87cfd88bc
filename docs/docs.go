// Package docs holds the project's documents for programs that show them. It
// leaves the writing to those who read its other files.
package docs

import _ "embed"

// Definitions is reference/definitions.md, which says what each figure means.
//
//go:embed reference/definitions.md
var Definitions string
