package measure

import "scaler.mesh/scaler/internal/process"

// Process is that of Prometheus, so that its own cost can be watched and it can be killed.
func (r *Recorder) Process() process.Handle { return r.proc.Handle() }
