// htmx in the admin, as unfold uses it: without a <style> and without eval.
"use strict";
htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;
