package component_test

import (
	"testing"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/test/modulefiles"
)

func TestModuleFiles(t *testing.T) { modulefiles.Check(t, component.AllGraphs()) }
