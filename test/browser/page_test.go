//go:build e2e

package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// shown is a page in a browser.
type shown struct {
	ctx context.Context

	mu       sync.Mutex
	trouble  []string // what the browser complained of
	requests []string // what it fetched
}

// show opens a page.
func show(path string) *shown {
	GinkgoHelper()
	s := &shown{ctx: browser()}
	Expect(chromedp.Listen(s.ctx, s.record)).To(Succeed())
	call(s, runtime.Enable, cdp.Empty{})
	call(s, log.Enable, cdp.Empty{})
	call(s, network.Enable, network.EnableParams{})
	s.do(chromedp.Navigate("file://" + path))
	return s
}

func (s *shown) record(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch event := event.(type) {
	case *runtime.EventConsoleAPICalled:
		s.trouble = append(s.trouble, fmt.Sprintf("console: %s %v", event.Type, event.Args))
	case *runtime.EventExceptionThrown:
		s.trouble = append(s.trouble, event.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		s.trouble = append(s.trouble, event.Entry.Text)
	case *network.EventRequestWillBeSent:
		s.requests = append(s.requests, event.Request.URL)
	}
}

func (s *shown) do(actions ...chromedp.Action[chromedp.Void]) {
	GinkgoHelper()
	Expect(chromedp.Do(s.ctx, actions...)).To(Succeed())
}

// get runs one action and gives what it returns.
func get[T any](s *shown, action chromedp.Action[T]) T {
	GinkgoHelper()
	got, err := chromedp.Run(s.ctx, action)
	Expect(err).NotTo(HaveOccurred())
	return got
}

// call sends a command of the DevTools protocol.
func call[P, R any](s *shown, command cdp.Command[P, R], params P) {
	GinkgoHelper()
	_, err := chromedp.Call(s.ctx, command, params)
	Expect(err).NotTo(HaveOccurred())
}

// ask evaluates an expression in the page.
func ask[T any](s *shown, expression string) T {
	GinkgoHelper()
	return get(s, chromedp.Evaluate[T](expression, func(p *runtime.EvaluateParams) { p.AwaitPromise = new(true) }))
}

// prefer sets a preference of the browser, such as its colour scheme.
func (s *shown) prefer(scheme, media string) {
	GinkgoHelper()
	call(s, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: media, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

func (s *shown) width(pixels int64) {
	GinkgoHelper()
	s.do(chromedp.EmulateViewport(pixels, 900))
}

// openAll opens everything that is closed.
func (s *shown) openAll() {
	GinkgoHelper()
	ask[bool](s, `document.querySelectorAll("details").forEach(d => d.open = true), true`)
}

// picture leaves a picture of the whole page where it is asked for.
func (s *shown) picture(name string) {
	GinkgoHelper()
	dir := os.Getenv("SCALER_SCREENSHOTS")
	if dir == "" {
		return
	}
	png := get(s, chromedp.FullScreenshot(100))
	Expect(os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)).To(Succeed())
}

// violation is a finding of axe.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// serious are axe's findings that keep a person from using the page.
func (s *shown) serious() []string {
	GinkgoHelper()
	ask[bool](s, axe+"; true")
	text := ask[string](s, `axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations))`)
	var found []violation
	Expect(json.Unmarshal([]byte(text), &found)).To(Succeed())
	var lines []string
	for _, v := range found {
		if v.Impact == "serious" || v.Impact == "critical" {
			lines = append(lines, fmt.Sprintf("%s: %s, %d times, as in %s: %s", v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML, v.Nodes[0].FailureSummary))
		}
	}
	return lines
}

// unmarked returns the charts in which nothing can be seen.
func (s *shown) unmarked() []string {
	GinkgoHelper()
	return ask[[]string](s, `[...document.querySelectorAll("figure.chart")].filter(f => {
		if (f.querySelector("p.absent")) return false;
		return ![...f.querySelectorAll("svg .mark")].some(m => {
			const box = m.getBoundingClientRect(), style = getComputedStyle(m);
			return box.width + box.height > 2 && (m.matches(".line") ? style.stroke : style.fill) !== "none";
		});
	}).map(f => f.id)`)
}

func (s *shown) count(selector string) int {
	GinkgoHelper()
	return ask[int](s, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

var _ = Describe("a report", func() {
	DescribeTable("is whole, complains of nothing, and can be read by everybody",
		func(name string, charts, absent int, dirs ...string) {
			s := show(report(dirs...))
			Expect(s.count("figure.chart")).To(Equal(charts))
			Expect(s.count("figure.chart p.absent")).To(Equal(absent))
			s.picture(name)
			s.openAll()
			Expect(s.unmarked()).To(BeEmpty())
			Expect(s.trouble).To(BeEmpty())
			Expect(s.requests).To(HaveEach(Or(HavePrefix("file://"), HavePrefix("data:"))), "it needs no network")
			Expect(s.serious()).To(BeEmpty())
		},
		Entry("of four runs", "four", 6+4*18, 0, "testdata/runs"),
		Entry("of one run", "one", 18, 0, "testdata/runs/istiod-strict-20"),
		Entry("of one that failed", "failed", 14, 14, "testdata/failed"),
	)

	It("says why there are no time lines where a record has none", func() {
		older := filepath.Join(GinkgoT().TempDir(), "run")
		Expect(os.CopyFS(older, os.DirFS("testdata/runs/istiod-strict-20"))).To(Succeed())
		Expect(os.Remove(filepath.Join(older, "timeline.jsonl"))).To(Succeed())
		s := show(report(older))
		Expect(ask[[]string](s, `[...document.querySelectorAll("p.absent")].map(p => p.textContent)`)).To(And(
			HaveLen(6), HaveEach(ContainSubstring("no time line"))))
		Expect(s.unmarked()).To(BeEmpty())
		Expect(s.trouble).To(BeEmpty())
	})

	It("is as wide as the screen, dark or light", func() {
		s := show(report("testdata/runs/istiod-strict-20"))
		s.openAll()
		for _, pixels := range []int64{360, 800, 1400} {
			s.width(pixels)
			Expect(ask[float64](s, "document.documentElement.scrollWidth")).To(BeNumerically("<=", pixels))
		}
		paper := map[string]string{}
		for _, scheme := range []string{"light", "dark"} {
			s.prefer(scheme, "")
			paper[scheme] = ask[string](s, "getComputedStyle(document.body).backgroundColor")
			s.width(390)
			Expect(s.serious()).To(BeEmpty(), scheme)
			s.picture("phone-" + scheme)
		}
		Expect(paper["light"]).To(Equal("rgb(255, 255, 255)"))
		Expect(paper["dark"]).NotTo(Equal(paper["light"]))
	})

	It("answers first, in one screen, with tables that fit it", func() {
		s := show(report("testdata/runs"))
		Expect(ask[string](s, `document.querySelector("h1").textContent`)).To(Equal("istiod 1.31.0: 12 and 20 pods, permissive and strict, all at once, with faults"))
		Expect(ask[bool](s, `document.querySelector("#answer table").getBoundingClientRect().bottom < 900`)).To(BeTrue())
		for _, pixels := range []int64{800, 1280} {
			s.width(pixels)
			s.openAll()
			Expect(ask[[]string](s, `[...document.querySelectorAll(".wide")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)`)).To(BeEmpty(), "tables wider than %d", pixels)
			s.picture(fmt.Sprintf("open-%d", pixels))
		}
		Expect(ask[[]string](s, `[...document.querySelectorAll("th, td")].filter(e => e.querySelectorAll(".mark-link").length > 1).map(e => e.textContent)`)).To(BeEmpty(), "cells with several marks")
	})

	It("prints whole, closed parts too, on white", func() {
		s := show(report("testdata/runs/istiod-strict-12", "testdata/runs/istiod-strict-20"))
		s.prefer("dark", "print")
		Expect(ask[string](s, "getComputedStyle(document.body).backgroundColor")).To(Equal("rgb(255, 255, 255)"))
		Expect(ask[[]string](s, `[...document.querySelectorAll("details.run figure.chart, .definitions h3")].filter(e => e.getBoundingClientRect().height < 5).map(e => e.id)`)).To(BeEmpty())
		s.width(794)
		s.picture("print")
		pdf := get(s, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
		Expect(string(pdf[:5])).To(Equal("%PDF-"))
		if dir := os.Getenv("SCALER_SCREENSHOTS"); dir != "" {
			Expect(os.WriteFile(filepath.Join(dir, "print.pdf"), pdf, 0o644)).To(Succeed())
		}
	})

	It("can be used with the keyboard alone", func() {
		s := show(report("testdata/runs"))
		at := func() string { return ask[string](s, `document.activeElement.outerHTML.slice(0, 60)`) }
		tab := func() { s.do(chromedp.KeyEvent(kb.Tab)) }
		tab()
		Expect(at()).To(HavePrefix(`<a class="skip"`))
		s.do(chromedp.KeyEvent(kb.Enter))
		Expect(ask[string](s, "location.hash")).To(Equal("#main"))
		Expect(at()).To(HavePrefix(`<main`))

		By("reaching everything, in the page's order, and seeing where one is")
		all := ask[int](s, `[...document.querySelectorAll("main a, main summary, main [tabindex='0']")].filter(e => e.checkVisibility()).length`)
		for range all {
			tab()
			Expect(ask[string](s, "getComputedStyle(document.activeElement).outlineStyle")).To(Equal("solid"), at())
		}
		Expect(at()).To(HavePrefix("<summary>How each figure is defined"))

		By("opening and closing a part")
		closed := s.count("details:not([open])")
		s.do(chromedp.KeyEvent(kb.Enter))
		Expect(s.count("details:not([open])")).To(Equal(closed - 1))
		Expect(s.count("details.definitions[open]")).To(Equal(1))
		s.do(chromedp.KeyEvent(" "))
		Expect(s.count("details:not([open])")).To(Equal(closed))

		By("following the mark of a figure to what limits it")
		ask[bool](s, `document.querySelector("main a.mark-link").focus(), true`)
		s.do(chromedp.KeyEvent(kb.Enter))
		hash := ask[string](s, "location.hash")
		Expect(hash).To(HavePrefix("#limit-"))
		Expect(ask[bool](s, fmt.Sprintf("document.getElementById(%q).checkVisibility()", strings.TrimPrefix(hash, "#")))).To(BeTrue())

		By("opening a run from the table at the head, which shows what is in it")
		ask[bool](s, `document.querySelector("#answer td a, #answer tbody th a").focus(), true`)
		s.do(chromedp.KeyEvent(kb.Enter))
		Expect(ask[string](s, "location.hash")).To(HavePrefix("#run-"))
	})
})
