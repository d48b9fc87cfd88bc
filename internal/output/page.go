package output

import (
	_ "embed"
	"slices"
)

// PageFormats are Formats, and html for what can be printed as a page.
var PageFormats = append(slices.Clone(Formats), "html")

// PageStyle is the style sheet that pages of -o html have in common: colours of the light and the dark scheme, text,
// tables, and paper. A page adds rules for what it alone has.
//
//go:embed page.css
var PageStyle string
