package assess

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"scaler.mesh/scaler/internal/output"
)

var pageMarkup = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>{{.Title}} - scaler</title>
<style>{{.Style}}
th, td { text-align: left; }
main { overflow-wrap: anywhere; }
</style>
</head>
<body>
<main>
{{.Body}}</main>
</body>
</html>
`))

// writePage writes a text in Markdown as one page that looks as the other ones, and needs no other file and no network. HTML in the
// text is left out.
func writePage(w io.Writer, title, text string) error {
	var body strings.Builder
	if err := goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(text), &body); err != nil {
		return fmt.Errorf("writing a page: %w", err)
	}
	return pageMarkup.Execute(w, struct {
		Title string
		Style template.CSS
		Body  template.HTML
	}{title, template.CSS(output.PageStyle), template.HTML(body.String())})
}
