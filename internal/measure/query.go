package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// Point is a value and its time.
type Point struct {
	At    time.Time
	Value float64
}

// Series is a series of a range query.
type Series struct {
	// Labels distinguish it from the others; __name__ is the metric, where one is left.
	Labels map[string]string
	// Points in the order of time; moments without a value are left out.
	Points []Point
}

// Value evaluates a PromQL expression at a moment. The result must be a scalar
// or at most one series: sum or max over the instances of a job. False means
// that there is no value: no series, or not a number, as a ratio of nothing to
// nothing is.
func (r *Recorder) Value(ctx context.Context, expr string, at time.Time) (float64, bool, error) {
	result, _, _, err := r.api.Query(ctx, expr, at)
	if err != nil {
		return 0, false, fmt.Errorf("querying %q: %w", expr, err)
	}
	v, ok, err := value(result)
	if err != nil {
		return 0, false, fmt.Errorf("querying %q: %w", expr, err)
	}
	return v, ok, nil
}

func value(result model.Value) (float64, bool, error) {
	var v float64
	switch result := result.(type) {
	case *model.Scalar:
		v = float64(result.Value)
	case model.Vector:
		switch {
		case len(result) == 0:
			return 0, false, nil
		case len(result) > 1:
			return 0, false, fmt.Errorf("%d series, want one", len(result))
		case result[0].Histogram != nil:
			return 0, false, fmt.Errorf("a histogram, want a number")
		}
		v = float64(result[0].Value)
	default:
		return 0, false, fmt.Errorf("a %s, want a number", result.Type())
	}
	return v, !math.IsNaN(v), nil
}

func matrix(result model.Value) ([]Series, error) {
	streams, ok := result.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("a %s, want series", result.Type())
	}
	series := make([]Series, 0, len(streams))
	for _, stream := range streams {
		s := Series{Labels: map[string]string{}}
		for name, value := range stream.Metric {
			s.Labels[string(name)] = string(value)
		}
		for _, pair := range stream.Values {
			s.Points = append(s.Points, Point{pair.Timestamp.Time(), float64(pair.Value)})
		}
		series = append(series, s)
	}
	return series, nil
}

// samples returns the raw samples of a selector in (from, to], as scraped.
func (r *Recorder) samples(ctx context.Context, selector string, from, to time.Time) ([]Series, error) {
	expr := fmt.Sprintf("%s[%s]", selector, promDuration(to.Sub(from)))
	result, _, _, err := r.api.Query(ctx, expr, to)
	if err != nil {
		return nil, fmt.Errorf("querying %q: %w", expr, err)
	}
	return matrix(result)
}

// Scraped returns when every target of these jobs, of all if none is given, has been scraped with success after since.
// A job that the recorder does not scrape is an error at once. Call it with a phase's end before asking for the phase: a scrape takes up to
// an interval to come and to be stored. When ctx is done first, or 10 s and two
// intervals have passed, the error names the targets that are missing and what their last
// scrapes met.
func (r *Recorder) Scraped(ctx context.Context, since time.Time, jobs ...string) error {
	for _, job := range jobs {
		if _, ok := r.intervals[job]; !ok {
			return fmt.Errorf("waiting for scrapes: no job %q", job)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lateScrapes+2*slices.Max(slices.Collect(maps.Values(r.intervals))))
	defer cancel()
	return r.awaitScrapes(ctx, since, jobs)
}

func (r *Recorder) awaitScrapes(ctx context.Context, since time.Time, jobs []string) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last := errors.New("prometheus was not asked yet")
	for {
		switch missing, err := r.missing(ctx, since, jobs); {
		case err == nil && len(missing) == 0:
			return nil
		case err == nil:
			last = errors.New(strings.Join(missing, "; "))
		case ctx.Err() == nil:
			last = err
		}
		select {
		case <-r.proc.Done():
			if err := r.proc.Err(); err != nil {
				return fmt.Errorf("waiting for scrapes: prometheus ended: %w", err)
			}
			return errors.New("waiting for scrapes: prometheus was stopped")
		case <-ctx.Done():
			return fmt.Errorf("waiting for scrapes: %w: %w%s", ctx.Err(), last, r.failures(ctx))
		case <-ticker.C:
		}
	}
}

// missing names those of the jobs, of all if none is given, with fewer instances scraped after since than they
// have targets.
func (r *Recorder) missing(ctx context.Context, since time.Time, jobs []string) ([]string, error) {
	var missing []string
	for job, targets := range r.expected() {
		if len(jobs) > 0 && !slices.Contains(jobs, job) {
			continue
		}
		// Only of a bare selector does timestamp give the samples' own time.
		expr := fmt.Sprintf("count(timestamp(up{job=%q}) > %.3f and up{job=%q} == 1)", job, float64(since.UnixMilli())/1000, job)
		scraped, _, err := r.Value(ctx, expr, time.Now())
		if err != nil {
			return nil, err
		}
		if int(scraped) < targets {
			missing = append(missing, fmt.Sprintf("%s: %d of %d targets", job, int(scraped), targets))
		}
	}
	return missing, nil
}

// failures returns the errors of the last scrapes of targets, "" when nothing or when
// Prometheus does not say.
func (r *Recorder) failures(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	targets, err := r.api.Targets(ctx)
	if err != nil {
		return ""
	}
	var text strings.Builder
	for _, t := range targets.Active {
		if t.LastError != "" {
			fmt.Fprintf(&text, "; %s: %s", t.ScrapeURL, t.LastError)
		}
	}
	return text.String()
}
