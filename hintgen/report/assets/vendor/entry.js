// What the report page uses of its libraries, as one global: TH.
import cytoscape from "cytoscape";
import dagre from "cytoscape-dagre";
import * as echarts from "echarts/core";
import { CustomChart, HeatmapChart, LineChart, SankeyChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  TooltipComponent,
  VisualMapComponent,
} from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";

cytoscape.use(dagre);
echarts.use([
  CustomChart, HeatmapChart, LineChart, SankeyChart, AriaComponent, DataZoomComponent,
  GridComponent, LegendComponent, TooltipComponent, VisualMapComponent, CanvasRenderer,
]);
globalThis.TH = { cytoscape, echarts };
