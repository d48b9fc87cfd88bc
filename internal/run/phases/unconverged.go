package phases

import "errors"

// ErrUnconverged reports that the rollout's time limit passed first. The run's
// record is complete but for the phases after rollout.
var ErrUnconverged = errors.New("the mesh did not converge")
