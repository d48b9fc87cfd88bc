// Package browser tests the pages of scaler report and scaler diff in Chromium as their readers
// see them: in light and dark, on a phone, on paper, with a keyboard and with a screen
// reader. Those of diff are of records that the specs write, the others of small runs in testdata, made by the real programs:
//
//	scaler rollout --pods 12,20 --mode both --steady 5s --baseline 2s --settle 3s \
//		--probes 3 --fault reset-streams:20%@steady
//
// without what pages do not show (time series, logs), and of one that failed as it
// began. The suite has the build tag e2e; hack/setup-browser.sh installs what it needs.
// With SCALER_SCREENSHOTS=DIR it writes screenshots of the pages into DIR.
package browser
